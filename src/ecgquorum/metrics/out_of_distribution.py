"""Detection of recordings that are out of distribution, by a score that should be higher for them."""

import numpy as np

from ecgquorum.metrics.error_detection import error_auroc
from ecgquorum.metrics.weighting import Array, as_weights, ratio

ACCEPTED = 0.95
"""The share of natural recordings that is accepted where false acceptances are counted."""


def ood_auroc(natural: Array, unknown: Array, weights: Array | None = None) -> Array:
    """(draw,): AUROC = P(u_unknown > u_natural) + P(u_unknown = u_natural) / 2.

    natural, unknown: (record,) each, of the same recordings, so that draws take both or neither · weights: of them
    """
    weights = as_weights(weights, len(natural))
    is_unknown = np.repeat([False, True], [len(natural), len(unknown)])
    return error_auroc(is_unknown, np.concatenate([natural, unknown]), np.concatenate([weights, weights], axis=1))


def fpr_at_tpr(natural: Array, unknown: Array, weights: Array | None = None, *, tpr: float = ACCEPTED) -> Array:
    """(draw,): the share of unknown recordings that are accepted where at least `tpr` of the natural ones are.

    A recording is accepted if its score is at most a threshold, the smallest that accepts that share.
    """
    weights = as_weights(weights, len(natural))
    order = np.argsort(natural, kind="stable")
    reached = np.cumsum(weights[:, order], axis=1) >= tpr * weights.sum(axis=1, keepdims=True) - 1e-9
    threshold = natural[order][reached.argmax(axis=1)]
    return ratio((weights * (unknown <= threshold[:, None])).sum(axis=1), weights.sum(axis=1))
