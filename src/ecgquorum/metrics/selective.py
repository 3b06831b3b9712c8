"""Selective classification: errors that remain when the most uncertain recordings are deferred to a person.

Recordings of equal uncertainty could come in any order: every metric is the mean over all of them.
"""

import numpy as np

from ecgquorum.metrics.ranking import cumulate, interpolate
from ecgquorum.metrics.weighting import Array, Flags, as_weights, ratio

_TOLERANCE = 1e-9  # of counts of recordings, against rounding errors

BUDGET = 0.1
"""The share of recordings that is deferred to people where errors caught are counted."""


def deferral_curve(errors: Flags, uncertainty: Array) -> tuple[Array, Array]:
    """Coverage from 0 to 1, and the errors among the recordings kept as a share of all: (record + 1,) each.

    Recordings are kept in the order of their uncertainty, the most certain first.
    """
    (kept,), (remaining,) = cumulate(errors, uncertainty, as_weights(None, len(errors)))
    counts = np.arange(len(errors) + 1)
    return counts / len(errors), np.interp(counts, kept, remaining) / len(errors)


def augrc(errors: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): area under the generalised risk-coverage curve (Traub et al. 2024), which is the deferral curve."""
    kept, remaining = cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    total = kept[:, -1:]
    return np.asarray(np.trapezoid(remaining / total, kept / total, axis=1))


def aurc(errors: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): area under the risk-coverage curve: the mean over coverages of the error rate among those kept.

    A step of w recordings with the error rate s, after k recordings with r errors, adds
    sum_{j=1..w} (r + s j) / (k + j) = s w + (r - s k) (H(k + w) - H(k)), with H the harmonic numbers.
    """
    from scipy.special import digamma  # takes long to import

    kept, remaining = cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    size, wrong = np.diff(kept, axis=1), np.diff(remaining, axis=1)
    rate = np.nan_to_num(ratio(wrong, size))
    harmonic = np.diff(digamma(kept + 1), axis=1)
    areas = wrong + (remaining[:, :-1] - rate * kept[:, :-1]) * harmonic
    return np.asarray(areas.sum(axis=1) / kept[:, -1])


def risk_at_coverage(errors: Flags, uncertainty: Array, coverage: float, weights: Array | None = None) -> Array:
    """(draw,): the error rate among the most certain share `coverage` of the recordings, rounded up to a whole one."""
    kept, remaining = cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    wanted = np.ceil(coverage * kept[:, -1] - _TOLERANCE)
    return ratio(interpolate(kept, remaining, wanted), wanted)


def coverage_at_risk(errors: Flags, uncertainty: Array, risk: float, weights: Array | None = None) -> Array:
    """(draw,): the largest share of recordings, the most certain first, with an error rate of at most `risk`; or 0."""
    kept, remaining = cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    size, slope = np.diff(kept, axis=1), ratio(np.diff(remaining, axis=1), np.diff(kept, axis=1)) - risk
    margin = risk * kept - remaining  # errors that may still be added
    # whole steps where the margin lasts, otherwise as many recordings as it pays for
    affordable = np.floor(np.nan_to_num(ratio(margin[:, :-1], slope)) + _TOLERANCE)
    taken = np.where(margin[:, 1:] >= -_TOLERANCE, size, np.clip(affordable, 0, size))
    reached = np.where(taken > 0, kept[:, :-1] + taken, 0.0)
    return np.asarray(reached.max(axis=1) / kept[:, -1])


def errors_caught(errors: Flags, uncertainty: Array, budget: float, weights: Array | None = None) -> Array:
    """(draw,): the share of all errors among the most uncertain share `budget` of the recordings; NaN without errors.

    A part of a recording counts as that part.
    """
    kept, remaining = cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    left = interpolate(kept, remaining, (1 - budget) * kept[:, -1])
    return ratio(remaining[:, -1] - left, remaining[:, -1])
