"""Error detection: how well an uncertainty score tells incorrect predictions from correct ones."""

import numpy as np

from ecgquorum.metrics.ranking import cumulate
from ecgquorum.metrics.weighting import Array, Flags, as_weights, ratio


def error_auroc(errors: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): AUROC = P(u_error > u_correct) + P(u_error = u_correct) / 2; NaN without errors or without others."""
    kept, wrong = cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    right = kept - wrong
    pairs = (np.diff(wrong, axis=1) * (right[:, 1:] + right[:, :-1])).sum(axis=1) / 2
    return ratio(pairs, wrong[:, -1] * right[:, -1])


def error_aupr(errors: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): average precision of errors as the class to find: sum_n (R_n - R_{n-1}) P_n; NaN without errors.

    P_n and R_n: precision and recall of all recordings with at least the n-th highest uncertainty.
    """
    deferred, found = cumulate(errors, -uncertainty, as_weights(weights, len(errors)))
    precision = np.nan_to_num(ratio(found, deferred))[:, 1:]
    return ratio((np.diff(found, axis=1) * precision).sum(axis=1), found[:, -1])
