"""All measures of one ensemble's answers under one condition, as values with intervals or with the reason for none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ecgquorum.metrics import measures
from ecgquorum.metrics.calibration import apply_temperature
from ecgquorum.metrics.measures import Array, Estimate, Flags, Labels, bootstrap

COVERAGES = (0.8, 0.9)
ONE_MEMBER = "one member has nobody to disagree with"


@dataclass(frozen=True, eq=False)
class Answers:
    """What an ensemble said of recordings whose truth is known.

    member_probs: (record, member, class) · truth: (record,) · uncertainty: (record,), I_norm
    temperature:  by which probabilities are calibrated
    """

    truth: Labels
    member_probs: Array
    uncertainty: Array
    temperature: float = 1.0

    @property
    def probs(self) -> Array:
        """(record, class): the mean of the members'."""
        return np.asarray(self.member_probs.mean(axis=1))

    @property
    def calibrated(self) -> Array:
        """(record, class): the mean of the members' at the ensemble's temperature."""
        return apply_temperature(self.probs, self.temperature)

    @property
    def answer(self) -> Labels:
        """(record,): the most probable class."""
        return np.asarray(self.probs.argmax(axis=1))

    @property
    def right(self) -> Flags:
        """(record,): whether the answer is the truth."""
        return np.asarray(self.answer == self.truth)

    @property
    def margin(self) -> Array:
        """(record,): probability of the truth less that of the likeliest other class; negative where wrong."""
        probs, rows = self.probs, np.arange(len(self.truth))
        others = probs.copy()
        others[rows, self.truth] = -np.inf
        return np.asarray(probs[rows, self.truth] - others.max(axis=1))

    @property
    def alone(self) -> bool:
        """Whether there is one member only, so that uncertainty means nothing."""
        return len(self.member_probs[0]) == 1

    def at(self, places: Labels) -> "Answers":
        """The answers to some of the recordings."""
        return Answers(self.truth[places], self.member_probs[places], self.uncertainty[places], self.temperature)


@dataclass(frozen=True)
class Measured:
    """A measure by its name, for a class or pair of members where it has one; `reason` where there is no value.

    n_records: how many recordings it was measured on, where not on those of its condition
    """

    measure: str
    detail: str
    estimate: Estimate
    reason: str = ""
    n_records: int | None = None


def measured(answers: Answers, classes: tuple[str, ...]) -> Iterator[Measured]:
    """Every measure of METHOD, section 8, with its interval."""
    truth, answer, right, n = answers.truth, answers.answer, answers.right, len(answers.truth)
    n_classes = len(classes)

    def estimate(name: str, measure: Callable[[Array], Array], reason: str = "", detail: str = "") -> Measured:
        found = bootstrap(measure, n)
        return Measured(name, detail, found, "" if np.isfinite(found.value) else reason)

    yield estimate("accuracy", partial(measures.accuracy, right))
    yield estimate("macro_f1", partial(measures.macro_f1, truth, answer, n_classes))
    for index, name in enumerate(classes):
        f1 = partial(_class_f1, truth, answer, n_classes, index)
        if (truth == index).any():
            yield estimate("f1", f1, detail=name)
        else:
            yield Measured("f1", name, UNDEFINED, "no recordings of this class")
    for suffix, probs in (("", answers.probs), ("_calibrated", answers.calibrated)):
        yield estimate(f"ece{suffix}", partial(measures.expected_calibration_error, probs, truth))
        yield estimate(f"brier{suffix}", partial(measures.brier, probs, truth))
    for name, of_uncertainty, reason in _of_uncertainty(right, answers.uncertainty):
        if answers.alone:
            yield Measured(name, "", UNDEFINED, ONE_MEMBER)
        else:
            yield estimate(name, of_uncertainty, reason)


UNDEFINED = Estimate(float("nan"), float("nan"), float("nan"))


def _class_f1(truth: Labels, answer: Labels, n_classes: int, index: int, weights: Array) -> Array:
    return measures.class_f1(truth, answer, n_classes, weights)[:, index]


def _of_uncertainty(right: Flags, uncertainty: Array) -> Iterator[tuple[str, Callable[[Array], Array], str]]:
    def area(curve: Callable[[Flags, Array, Array], Array]) -> Callable[[Array], Array]:
        return lambda weights: measures.threshold_auc(curve(right, uncertainty, weights))

    kinds = "no wrong answers" if right.all() else "no right answers"
    yield "r_cc_auc", area(measures.correct_certain_ratio), "nothing is certain"
    yield "r_iu_auc", area(measures.incorrect_uncertain_ratio), "no wrong answers"
    yield "ua_auc", area(measures.uncertainty_accuracy), ""
    yield "delta_i_norm", partial(measures.uncertainty_gap, right, uncertainty), kinds
    yield "mean_i_norm", lambda weights: weights @ uncertainty / weights.sum(axis=1), ""
    yield "deferral_auc", partial(measures.deferral_auc, ~right, uncertainty), ""
    yield "aurc", partial(measures.aurc, ~right, uncertainty), ""
    for coverage in COVERAGES:
        name = f"risk_at_{coverage:.0%}".replace("%", "")
        yield name, partial(measures.risk_at_coverage, ~right, uncertainty, coverage), ""
