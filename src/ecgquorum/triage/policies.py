"""Four policies that decide which recordings go to people; fitted on the tune part, stored in a bundle's card.

Policies compare the rounded numbers that are printed, so that a decision always agrees with the numbers beside it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from ecgquorum.ensemble import Prediction
from ecgquorum.ensemble.prediction import DECIMALS, TOLERANCE, round_printed
from ecgquorum.ensemble.scores import SCORE_NAMES
from ecgquorum.errors import PolicyError
from ecgquorum.triage.urgency import Urgency

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Labels = NDArray[np.int64]

PROBABILITIES = ("risk", "confidence")
"""Scores that are probabilities of an error, which costs and prediction sets need."""

SCORE_WORDS = {"risk": "risk", "uncertainty": "normalised uncertainty", "confidence": "1 - max p"}
"""What sentences call scores, where not by their name."""


@dataclass(frozen=True)
class TuneFigures:
    """What a policy would have done on the tune part that it was fitted on.

    errors, caught: of all recordings, and of the deferred ones · risk_model: hash of the risk that it was fitted with
    """

    n_records: int
    deferred: int
    errors: int
    caught: int
    risk_model: str = ""

    def sentence(self) -> str:
        """The figures in one sentence."""
        kept = self.n_records - self.deferred
        rest = f"; {100 * (self.errors - self.caught) / kept:.1f} % of the rest are errors" if kept else ""
        return (
            f"On the {self.n_records} tune recordings it would have deferred {self.deferred} "
            f"({100 * self.deferred / self.n_records:.1f} %) and caught {self.caught} of {self.errors} errors{rest}."
        )


@dataclass(frozen=True)
class Policy(ABC):
    """A rule that defers some recordings to people.

    score: the uncertainty score that it uses
    tune:  what it would have done on the tune part; None: not fitted there
    urgency: rules that hold whatever the policy says, see `Urgency`; None: the default ones
    """

    kind: ClassVar[str]
    scores: ClassVar[tuple[str, ...]] = SCORE_NAMES
    """The scores that this kind of policy can use."""

    score: str = field(default="risk", kw_only=True)
    tune: TuneFigures | None = field(default=None, kw_only=True)
    urgency: Urgency | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.score not in self.scores:
            raise PolicyError(f"{self.kind}: expected a score of {', '.join(self.scores)}, found {self.score!r}")

    @final
    def with_figures(self, prediction: Prediction, truth: Labels) -> Self:
        """The policy with what it does on the recordings of a tune part, (record,) classes by number."""
        deferred, errors = self.defer(prediction), prediction.label_index != truth
        model = prediction.risk_model.sha256 if prediction.risk_model else ""
        counts = [int(flags.sum()) for flags in (deferred, errors, errors & deferred)]
        return replace(self, tune=TuneFigures(len(prediction), counts[0], counts[1], counts[2], model))

    @abstractmethod
    def defer(self, prediction: Prediction) -> Flags:
        """(record,): which recordings a person should read."""

    @abstractmethod
    def sentence(self) -> str:
        """The policy in one sentence."""

    def reason(self, prediction: Prediction, index: int) -> str:
        """Why the recording at `index` is deferred."""
        return f"{self._score_words} {prediction.score(self.score)[index]:.{DECIMALS}f}"

    @property
    def _score_words(self) -> str:
        return SCORE_WORDS.get(self.score, self.score.replace("_", " "))

    @final
    def card(self) -> dict[str, Any]:
        """The policy for a bundle's card."""
        return {"kind": self.kind, **asdict(self)}


@final
@dataclass(frozen=True)
class Threshold(Policy):
    """Defer recordings with a score above a threshold."""

    kind = "threshold"
    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.threshold):
            raise PolicyError(f"threshold: expected a number, found {self.threshold}")

    def defer(self, prediction: Prediction) -> Flags:
        """A score above the threshold."""
        return _exceeds(prediction.score(self.score), self.threshold)

    def sentence(self) -> str:
        """The policy in one sentence."""
        return f"A recording goes to people when its {self._score_words} is above {self.threshold:.{DECIMALS}g}."


@final
@dataclass(frozen=True)
class Budget(Policy):
    """Defer the most uncertain recordings, by the threshold that defers a given share of the tune part."""

    kind = "budget"
    share: float
    threshold: float

    @classmethod
    def fit(cls, prediction: Prediction, share: float, score: str = "risk") -> Self:
        """Fit the threshold that at most `share` of these recordings exceed, midway between two of them."""
        if not 0 <= share <= 1:
            raise PolicyError(f"budget: expected a share from 0 to 1, or 0 % to 100 %, found {share:g}")
        n_kept = int(np.ceil((1 - share) * len(prediction) - 1e-9))
        return cls(share, _midpoint_above(prediction.score(score), n_kept) if n_kept else -1.0, score=score)

    def defer(self, prediction: Prediction) -> Flags:
        """A score above the threshold."""
        return _exceeds(prediction.score(self.score), self.threshold)

    def sentence(self) -> str:
        """The policy in one sentence."""
        return (
            f"About {self.share:.0%} of the recordings go to people: those whose {self._score_words} is above "
            f"{self.threshold:.{DECIMALS}g}, which at most {self.share:.0%} of the tune part exceeded."
        )


@final
@dataclass(frozen=True)
class ExpectedCost(Policy):
    """Defer recordings whose expected cost of an error exceeds the cost of a review.

    The score is a probability that the label is wrong: the risk, or by "confidence" the calibrated probabilities alone.

    costs: of predicting the second class where the first is true: {true: {predicted: cost}}; 1 for errors not named
    """

    kind = "cost"
    scores = PROBABILITIES
    review: float
    costs: dict[str, dict[str, float]]

    def __post_init__(self) -> None:
        super().__post_init__()
        costs = [self.review, *(cost for row in self.costs.values() for cost in row.values())]
        if not all(math.isfinite(cost) and cost >= 0 for cost in costs):
            raise PolicyError(f"cost: expected costs of 0 or more, found {costs}")
        free = [name for name, row in self.costs.items() if row.get(name)]
        if free:
            raise PolicyError(f"cost: expected none for the right class, found one for {', '.join(free)}")

    def expected_cost(self, prediction: Prediction) -> Array:
        """(record,): sum_t p_t cost(t, label), by the probabilities p of `class_probabilities`."""
        costs = self._matrix(prediction.classes)[:, prediction.label_index].T
        return np.asarray((class_probabilities(prediction, self.score) * costs).sum(axis=1))

    def _matrix(self, classes: tuple[str, ...]) -> Array:
        """(true, predicted)."""
        named = {*self.costs, *(predicted for row in self.costs.values() for predicted in row)}
        unknown = named - set(classes)
        if unknown:
            raise PolicyError(f"cost: expected classes of {', '.join(classes)}, found {', '.join(sorted(unknown))}")
        return np.array([[0.0 if t == a else self.costs.get(t, {}).get(a, 1.0) for a in classes] for t in classes])

    def defer(self, prediction: Prediction) -> Flags:
        """An expected cost above that of a review."""
        return _exceeds(self.expected_cost(prediction), self.review)

    def reason(self, prediction: Prediction, index: int) -> str:
        """The expected cost and that of a review."""
        return f"expected cost {self.expected_cost(prediction)[index]:.{DECIMALS}f}, a review {self.review:g}"

    def sentence(self) -> str:
        """The policy in one sentence."""
        named = [f"{cost:g} for {t} predicted as {a}" for t, row in self.costs.items() for a, cost in row.items()]
        errors = f" (errors cost {', '.join(named)}, others 1)" if named else " (every error costs 1)"
        return (
            f"A recording goes to people when the expected cost of its label, by its {self._score_words}, is above "
            f"that of a review, {self.review:g}{errors}."
        )


@final
@dataclass(frozen=True)
class Conformal(Policy):
    """Defer recordings with more than one class in the prediction set (split conformal, adaptive prediction sets).

    A set holds the most probable classes until their probabilities (`class_probabilities`) reach `quantile`. On
    recordings like those of the tune part the true class is in the set with a probability of at least 1 - alpha.
    """

    kind = "conformal"
    scores = PROBABILITIES
    alpha: float
    quantile: float

    @classmethod
    def fit(cls, prediction: Prediction, truth: Labels, alpha: float, score: str = "risk") -> Self:
        """Fit the quantile of the scores of these recordings, with the correction for their number."""
        if not 0 < alpha < 1:
            raise PolicyError(f"conformal: expected an error rate between 0 and 1, found {alpha:g}")
        n = len(truth)
        rank = int(np.ceil((n + 1) * (1 - alpha)))
        scores = _cumulative(class_probabilities(prediction, score))[np.arange(n), truth]
        return cls(alpha, _midpoint_above(scores, rank) if rank <= n else 1.0, score=score)

    def sets(self, prediction: Prediction) -> Flags:
        """(record, class): which classes are in each recording's set; the most probable always is."""
        reached = round_printed(_cumulative(class_probabilities(prediction, self.score)))
        inside = ~(reached > round_printed(self.quantile))  # NaN: every class, so that a person decides
        inside[np.arange(len(prediction)), prediction.label_index] = True
        return np.asarray(inside)

    def defer(self, prediction: Prediction) -> Flags:
        """More than one class in the set."""
        return np.asarray(self.sets(prediction).sum(axis=1) != 1)

    def reason(self, prediction: Prediction, index: int) -> str:
        """The classes of the set."""
        names = [name for name, inside in zip(prediction.classes, self.sets(prediction)[index], strict=True) if inside]
        return f"it may be {' or '.join(names)}"

    def sentence(self) -> str:
        """The policy in one sentence."""
        return (
            "A recording goes to people unless its prediction set has one class; on recordings like those of the tune "
            f"part the true class is in the set in at least {1 - self.alpha:.0%} of cases."
        )


def class_probabilities(prediction: Prediction, score: str) -> Array:
    """(record, class): calibrated probabilities; by "risk", rescaled so that the label has 1 - risk.

    The other classes share the risk in the proportion of their calibrated probabilities.
    """
    probs, rows, label = prediction.probs, np.arange(len(prediction)), prediction.label_index
    if score != "risk":
        return probs
    others = probs.copy()
    others[rows, label] = 0.0
    total = others.sum(axis=1, keepdims=True)
    even = (1 - np.eye(probs.shape[1])[label]) / max(1, probs.shape[1] - 1)
    found = prediction.risk[:, None] * np.where(total > 0, others / np.where(total > 0, total, 1), even)
    found[rows, label] = 1 - prediction.risk
    return np.asarray(found)


def _exceeds(values: Array, limit: float) -> Flags:
    """Which values are above the limit, both rounded to the printed decimals; NaN is, so that a person decides."""
    return np.asarray(~(round_printed(values) <= round_printed(limit)))


def _midpoint_above(values: Array, n_below: int) -> float:
    """Halfway between the `n_below`-th smallest value and the next: no value lies on it for rounding to flip."""
    ordered = np.sort(values)
    return float(ordered[n_below - 1 : n_below + 1].mean() if n_below < len(ordered) else ordered[-1] + TOLERANCE)


def _cumulative(probs: Array) -> Array:
    """(record, class): the probability of all classes that are at least as likely as this one."""
    order = np.argsort(-probs, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(probs, order, axis=1), axis=1)
    result = np.empty_like(probs)
    np.put_along_axis(result, order, reached, axis=1)
    return result


POLICIES: dict[str, type[Policy]] = {policy.kind: policy for policy in (Threshold, Budget, ExpectedCost, Conformal)}
"""Every kind of policy, by name."""


def policy_from(card: Mapping[str, Any]) -> Policy:
    """The policy in a bundle's card; one that names no score is of a version in which there was one for each kind."""
    fields = dict(card)
    kind = POLICIES.get(str(fields.pop("kind", "")))
    try:
        if kind is None:
            raise TypeError(f"expected the kind {', '.join(POLICIES)}")
        fields.setdefault("score", "confidence" if kind.scores is PROBABILITIES else "uncertainty")
        fields["tune"] = TuneFigures(**fields["tune"]) if fields.get("tune") else None
        fields["urgency"] = Urgency.from_card(fields["urgency"]) if fields.get("urgency") else None
        return kind(**fields)
    except TypeError as error:
        raise PolicyError(f"expected a policy that this version knows, found {dict(card)}: {error}") from error
