"""Uncertainty against a threshold: R_cc, R_iu, UA and the uncertainty gap (Wiedeman & Wang).

A prediction is certain at the threshold t where its uncertainty, clipped to 0 and 1, is at most t.
"""

import math

import numpy as np

from ecgquorum.metrics.weighting import Array, Flags, as_weights, ratio, weighted_mean

N_THRESHOLDS = 100


def widen_range(low: float, high: float) -> tuple[float, float]:
    """The range of mutual information to normalise by: (low, low + ln 2) where it is not wider than 0.001 nat.

    A range as narrow as rounding errors would make a large uncertainty of them.
    """
    return (low, high) if high - low > 1e-3 else (low, low + math.log(2))


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
    """(draw,): the area under each curve over thresholds by the trapezoid rule, divided by the width it covers.

    Thresholds at which the curve is NaN are left out. A curve with a single value has that value; one with none, NaN.
    """
    defined = np.isfinite(curve)
    segments = defined[:, 1:] & defined[:, :-1]
    middles = np.where(segments, (curve[:, 1:] + curve[:, :-1]) / 2, 0.0)
    areas = ratio(middles.sum(axis=1), segments.sum(axis=1).astype(np.float64))
    return np.where(segments.any(axis=1), areas, threshold_mean(curve))


def threshold_mean(curve: Array) -> Array:
    """(draw,): the plain mean over the thresholds at which the curve is defined, as in the authors' notebook."""
    defined = np.isfinite(curve)
    return ratio(np.where(defined, curve, 0.0).sum(axis=1), defined.sum(axis=1).astype(np.float64))


def uncertainty_gap(correct: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): mean uncertainty of incorrect predictions minus that of correct ones; NaN where there are none."""
    weights = as_weights(weights, len(correct))
    return np.asarray(weighted_mean(uncertainty, weights * ~correct) - weighted_mean(uncertainty, weights * correct))
