"""Uncertainty against a threshold: R_cc, R_iu, UA and the uncertainty gap (Wiedeman & Wang).

A prediction is certain at the threshold t where its uncertainty, clipped to 0 and 1, is at most t.
"""

import numpy as np

from ecgquorum.metrics.weighting import Array, Flags, as_weights, ratio, weighted_mean

N_THRESHOLDS = 100


def thresholds() -> Array:
    """The thresholds of all curves: 100 points from 0 to 1."""
    return np.linspace(0, 1, N_THRESHOLDS)


def certain_counts(correct: Flags, uncertainty: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Weight of the certain predictions that are correct, and of those that are incorrect: (draw, threshold) each."""
    weights = as_weights(weights, len(correct))
    certain = (np.clip(uncertainty, 0, 1)[:, None] <= thresholds()).astype(np.float64)
    return weights @ (certain * correct[:, None]), weights @ (certain * ~correct[:, None])


def correct_certain_ratio(correct: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw, threshold): R_cc = P(correct | certain); NaN where no prediction is certain."""
    good, bad = certain_counts(correct, uncertainty, weights)
    return ratio(good, good + bad)


def incorrect_uncertain_ratio(correct: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw, threshold): R_iu = P(uncertain | incorrect); NaN where no prediction is incorrect."""
    weights = as_weights(weights, len(correct))
    _, bad = certain_counts(correct, uncertainty, weights)
    return 1 - ratio(bad, (weights @ ~correct)[:, None])


def uncertainty_accuracy(correct: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw, threshold): UA = P(correct and certain, or incorrect and uncertain)."""
    weights = as_weights(weights, len(correct))
    good, bad = certain_counts(correct, uncertainty, weights)
    return ratio(good + (weights @ ~correct)[:, None] - bad, weights.sum(axis=1)[:, None])


def threshold_auc(curve: Array) -> Array:
    """(draw,): the area under each curve over thresholds, by the trapezoid rule.

    Thresholds at which the curve is NaN are left out; NaN where fewer than two are left.
    """
    x = thresholds()
    areas = np.full(len(curve), np.nan)
    for draw, y in enumerate(curve):
        known = np.isfinite(y)
        if known.sum() >= 2:
            areas[draw] = np.trapezoid(y[known], x[known])
    return areas


def uncertainty_gap(correct: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): mean uncertainty of incorrect predictions minus that of correct ones; NaN where there are none."""
    weights = as_weights(weights, len(correct))
    return np.asarray(weighted_mean(uncertainty, weights * ~correct) - weighted_mean(uncertainty, weights * correct))
