"""Measures of a prediction against the truth, with bootstrap intervals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecgquorum.randomness import numpy_generator

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_DRAWS = 1000


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def bootstrapped(
    measure: Callable[[Indices], Array], n_records: int, *, seed: int = 0, draws: int = _DRAWS
) -> Estimate:
    """`measure` on all recordings, and the 2.5 and 97.5 % quantiles of it on recordings drawn with replacement.

    measure: takes indices (draw, record) and gives one value a draw
    """
    whole = float(measure(np.arange(n_records)[None])[0])
    drawn = numpy_generator(seed, "bootstrap").integers(n_records, size=(draws, n_records))
    low, high = np.quantile(measure(drawn), [0.025, 0.975])
    return Estimate(whole, float(low), float(high))


def accuracy(truth: Indices, answer: Indices, draws: Indices) -> Array:
    """The share of right answers, for each draw."""
    return np.asarray((truth == answer)[draws].mean(axis=1))


def class_f1(truth: Indices, answer: Indices, n_classes: int, draws: Indices) -> Array:
    """(draw, class): F1 = 2 TP / (2 TP + FP + FN); 0 for a class that is neither there nor named."""
    scores = np.zeros((len(draws), n_classes))
    for label in range(n_classes):
        is_true, is_named = (truth == label)[draws], (answer == label)[draws]
        both = (is_true & is_named).sum(axis=1)
        either = is_true.sum(axis=1) + is_named.sum(axis=1)
        scores[:, label] = np.divide(2 * both, either, out=np.zeros(len(draws)), where=either > 0)
    return scores


def macro_f1(truth: Indices, answer: Indices, n_classes: int, draws: Indices) -> Array:
    """The mean of F1 over classes, for each draw."""
    return np.asarray(class_f1(truth, answer, n_classes, draws).mean(axis=1))


def confusion(truth: Indices, answer: Indices, n_classes: int) -> Indices:
    """(true class, named class): counts."""
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(counts, (truth, answer), 1)
    return counts


def deferral_curve(wrong: NDArray[np.bool_], uncertainty: Array) -> tuple[Array, Array]:
    """Errors left when the most certain share is kept and the rest is read by people.

    Returns the shares kept, 0 to 1, and the errors among them as a share of all recordings.
    """
    order = np.argsort(uncertainty, kind="stable")
    errors = np.concatenate([[0], np.cumsum(wrong[order])]) / len(wrong)
    return np.linspace(0, 1, len(wrong) + 1), errors
