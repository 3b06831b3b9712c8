"""Measures of answers against the truth (METHOD, section 8), each with a bootstrap interval.

Every measure takes `weights` (draw, record): how often each recording counts in each draw. All ones is the plain value;
counts of a draw with replacement are a bootstrap replicate. Sums over recordings are then matrix products, so that a
thousand draws of ten thousand recordings take seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.seeds import numpy_generator

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Flags = NDArray[np.bool_]

N_THRESHOLDS = 100
_DRAWS = 1000
_AT_ONCE = 100


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def bootstrap(measure: Callable[[Array], Array], n_records: int, *, seed: int = 0, draws: int = _DRAWS) -> Estimate:
    """`measure` on all recordings, and the 2.5 and 97.5 % quantiles of it on recordings drawn with replacement.

    measure: weights (draw, record) -> one value a draw, NaN where it is not defined. Draws on which it is not defined
             are left out; a value that is not defined has no interval either.
    """
    whole = float(measure(np.ones((1, n_records)))[0])
    rng = numpy_generator(seed, "bootstrap")
    values = []
    for start in range(0, draws, _AT_ONCE):
        size = min(_AT_ONCE, draws - start)
        drawn = rng.integers(n_records, size=(size, n_records)) + n_records * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n_records).reshape(size, n_records)
        values.append(measure(counts.astype(np.float64)))
    defined = np.concatenate(values)
    defined = defined[np.isfinite(defined)]
    if not np.isfinite(whole) or len(defined) == 0:
        return Estimate(whole, float("nan"), float("nan"))
    low, high = np.quantile(defined, [0.025, 0.975])
    return Estimate(whole, float(low), float(high))


def jackknife(measure: Callable[[Flags], float], n_records: int, *, seed: int = 0, blocks: int = 20) -> Estimate:
    """`measure` on all recordings, and 1.96 standard errors to both sides, from leaving out a block at a time.

    measure: which recordings to take (record,) -> the value; for measures that a draw with replacement would bias
    """
    whole = measure(np.ones(n_records, dtype=bool))
    block_of = numpy_generator(seed, "jackknife").permutation(n_records) % blocks
    left_out = np.array([measure(block_of != block) for block in range(blocks)])
    error = np.sqrt((blocks - 1) * left_out.var()) if np.isfinite(left_out).all() else np.nan
    if not np.isfinite(whole) or not np.isfinite(error):
        return Estimate(float("nan"), float("nan"), float("nan"))
    return Estimate(whole, float(whole - 1.96 * error), float(whole + 1.96 * error))


# --- answers ---------------------------------------------------------------------------------------------------------


def accuracy(right: Flags, weights: Array) -> Array:
    """(draw,): the share of right answers."""
    return _ratio(weights @ right, weights.sum(axis=1))


def class_f1(truth: Labels, answer: Labels, n_classes: int, weights: Array) -> Array:
    """(draw, class): F1 = 2 TP / (2 TP + FP + FN); NaN for a class that is neither there nor named."""
    is_true, is_named = np.eye(n_classes)[truth], np.eye(n_classes)[answer]
    return _ratio(2 * (weights @ (is_true * is_named)), weights @ (is_true + is_named))


def macro_f1(truth: Labels, answer: Labels, n_classes: int, weights: Array) -> Array:
    """(draw,): the mean of F1 over the classes that are there or named."""
    return np.asarray(np.nanmean(class_f1(truth, answer, n_classes, weights), axis=1))


def confusion(truth: Labels, answer: Labels, n_classes: int) -> Labels:
    """(true class, named class): counts."""
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(counts, (truth, answer), 1)
    return counts


# --- uncertainty against a threshold ---------------------------------------------------------------------------------


def thresholds() -> Array:
    """The thresholds of the curves: 100 points from 0 to 1."""
    return np.linspace(0, 1, N_THRESHOLDS)


def certain_counts(right: Flags, uncertainty: Array, weights: Array) -> tuple[Array, Array]:
    """Right and wrong answers that are certain, uncertainty (within 0 and 1) <= t: (draw, threshold) each."""
    certain = (np.clip(uncertainty, 0, 1)[:, None] <= thresholds()).astype(np.float64)
    return weights @ (certain * right[:, None]), weights @ (certain * ~right[:, None])


def correct_certain_ratio(right: Flags, uncertainty: Array, weights: Array) -> Array:
    """R_cc (draw, threshold): P(correct | certain); NaN where nothing is certain."""
    good, bad = certain_counts(right, uncertainty, weights)
    return _ratio(good, good + bad)


def incorrect_uncertain_ratio(right: Flags, uncertainty: Array, weights: Array) -> Array:
    """R_iu (draw, threshold): P(uncertain | incorrect); NaN where nothing is incorrect."""
    _, bad = certain_counts(right, uncertainty, weights)
    return 1 - _ratio(bad, (weights @ ~right)[:, None])


def uncertainty_accuracy(right: Flags, uncertainty: Array, weights: Array) -> Array:
    """UA (draw, threshold): P(correct and certain, or incorrect and uncertain)."""
    good, bad = certain_counts(right, uncertainty, weights)
    return _ratio(good + (weights @ ~right)[:, None] - bad, weights.sum(axis=1)[:, None])


def threshold_auc(curve: Array) -> Array:
    """(draw,): the area under a curve over thresholds by the trapezoid rule.

    Thresholds at which the curve is not defined are left out; NaN where fewer than two are defined.
    """
    x = thresholds()
    areas = np.full(len(curve), np.nan)
    for draw, y in enumerate(curve):
        known = np.isfinite(y)
        if known.sum() >= 2:
            areas[draw] = np.trapezoid(y[known], x[known])
    return areas


def uncertainty_gap(right: Flags, uncertainty: Array, weights: Array) -> Array:
    """Delta I_norm (draw,): mean uncertainty of wrong answers less that of right ones; NaN where a kind is missing."""
    wrong = _ratio(weights @ (uncertainty * ~right), weights @ ~right)
    return np.asarray(wrong - _ratio(weights @ (uncertainty * right), weights @ right))


# --- leaving the uncertain to people ---------------------------------------------------------------------------------


def deferral_curve(wrong: Flags, uncertainty: Array) -> tuple[Array, Array]:
    """Errors left when the most certain share is kept and the rest is read by people.

    Returns the shares kept, 0 to 1, and the errors among them as a share of all recordings.
    """
    kept, errors = _kept_and_errors(wrong, uncertainty, np.ones((1, len(wrong))))
    return _from_zero(kept)[0] / len(wrong), _from_zero(errors)[0] / len(wrong)


def deferral_auc(wrong: Flags, uncertainty: Array, weights: Array) -> Array:
    """(draw,): the area under the deferral curve, lower is better; the same as AUGRC."""
    kept, errors = _kept_and_errors(wrong, uncertainty, weights)
    total = kept[:, -1:]
    kept, errors = _from_zero(kept / total), _from_zero(errors / total)
    return np.asarray(np.trapezoid(errors, kept, axis=1))


def aurc(wrong: Flags, uncertainty: Array, weights: Array) -> Array:
    """(draw,): the area under the risk-coverage curve: the mean over recordings of the error rate among those kept."""
    kept, errors = _kept_and_errors(wrong, uncertainty, weights)
    steps = np.diff(_from_zero(kept), axis=1)
    risk = np.divide(errors, kept, out=np.zeros_like(kept), where=kept > 0)
    return np.asarray((steps * risk).sum(axis=1) / kept[:, -1])


def risk_at_coverage(wrong: Flags, uncertainty: Array, coverage: float, weights: Array) -> Array:
    """(draw,): the error rate among the most certain share `coverage`."""
    kept, errors = _kept_and_errors(wrong, uncertainty, weights)
    enough = kept >= coverage * kept[:, -1:] - 1e-9
    first = enough.argmax(axis=1)[:, None]
    return _ratio(np.take_along_axis(errors, first, 1), np.take_along_axis(kept, first, 1))[:, 0]


# --- probabilities ---------------------------------------------------------------------------------------------------


def expected_calibration_error(probs: Array, truth: Labels, weights: Array, n_bins: int = 15) -> Array:
    """ECE (draw,): the mean over equal bins of confidence of |accuracy - confidence|, weighted by what is in them."""
    confidence, right = probs.max(axis=1), probs.argmax(axis=1) == truth
    bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    gaps = weights @ (np.eye(n_bins)[bins] * (right - confidence)[:, None])
    return np.asarray(np.abs(gaps).sum(axis=1) / weights.sum(axis=1))


def brier(probs: Array, truth: Labels, weights: Array) -> Array:
    """(draw,): the mean over recordings of the squared distance between probabilities and the truth."""
    distance = ((probs - np.eye(probs.shape[1])[truth]) ** 2).sum(axis=1)
    return _ratio(weights @ distance, weights.sum(axis=1))


def _ratio(over: Array, under: Array) -> Array:
    over, under = np.broadcast_arrays(over, under)
    return np.asarray(np.divide(over, under, out=np.full(over.shape, np.nan), where=under > 0))


def _kept_and_errors(wrong: Flags, uncertainty: Array, weights: Array) -> tuple[Array, Array]:
    """Cumulative weight and cumulative errors, the most certain first: (draw, record) each.

    Recordings that are equally uncertain could come in any order; each of them counts as their mean.
    """
    order = np.argsort(uncertainty, kind="stable")
    ordered = weights[:, order]
    errors = ordered * wrong[order]
    starts = np.flatnonzero(np.diff(uncertainty[order], prepend=-np.inf))
    if len(starts) < len(order):
        sizes = np.diff(starts, append=len(order))
        shares = _ratio(np.add.reduceat(errors, starts, axis=1), np.add.reduceat(ordered, starts, axis=1))
        errors = np.nan_to_num(np.repeat(shares, sizes, axis=1)) * ordered
    return np.cumsum(ordered, axis=1), np.cumsum(errors, axis=1)


def _from_zero(curve: Array) -> Array:
    return np.concatenate([np.zeros((len(curve), 1)), curve], axis=1)
