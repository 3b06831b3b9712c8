"""When to answer, and when to ask a person: four policies, each fitted on the tune part and kept in a bundle's card."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from ecgquorum.ensemble import Prediction
from ecgquorum.errors import PolicyError

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Policy(ABC):
    """A rule that sends some recordings to people."""

    kind: ClassVar[str]

    @abstractmethod
    def deferred(self, prediction: Prediction) -> Flags:
        """(record,): which recordings a person is to read."""

    @abstractmethod
    def sentence(self) -> str:
        """What the policy does, for people."""

    def reason(self, prediction: Prediction, place: int) -> str:
        """Why the recording at `place` is deferred."""
        return f"uncertainty {prediction.uncertainty[place]:.3f}"

    @final
    def card(self) -> dict[str, Any]:
        """The policy for a bundle's card."""
        return {"kind": self.kind, **asdict(self)}


@final
@dataclass(frozen=True)
class Threshold(Policy):
    """Defer what is more uncertain than a threshold on normalised uncertainty."""

    kind = "threshold"
    threshold: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold):
            raise PolicyError(f"threshold: expected a number, found {self.threshold}")

    def deferred(self, prediction: Prediction) -> Flags:
        """Uncertainty above the threshold."""
        return np.asarray(prediction.uncertainty > self.threshold)

    def sentence(self) -> str:
        """What it does."""
        return f"A recording goes to people when its normalised uncertainty is above {self.threshold:.3f}."


@final
@dataclass(frozen=True)
class Budget(Policy):
    """Defer the most uncertain share: by the threshold that sends that share of the tune part to people."""

    kind = "budget"
    share: float
    threshold: float

    @classmethod
    def fitted(cls, prediction: Prediction, share: float) -> Self:
        """The threshold that at most `share` of these recordings exceed."""
        if not 0 <= share <= 1:
            raise PolicyError(f"budget: expected a share from 0 to 1, or 0 % to 100 %, found {share:g}")
        ordered = np.sort(prediction.uncertainty)
        n_kept = int(np.ceil((1 - share) * len(ordered) - 1e-9))
        return cls(share, float(ordered[n_kept - 1]) if n_kept else -1.0)

    def deferred(self, prediction: Prediction) -> Flags:
        """Uncertainty above the threshold."""
        return np.asarray(prediction.uncertainty > self.threshold)

    def sentence(self) -> str:
        """What it does."""
        return (
            f"About {self.share:.0%} of the recordings go to people: those with a normalised uncertainty above "
            f"{self.threshold:.3f}, which at most {self.share:.0%} of the tune part exceeded."
        )


@final
@dataclass(frozen=True)
class ExpectedCost(Policy):
    """Defer what would cost more in expected errors, by calibrated probabilities, than a review does.

    costs: of answering the second class where the first is true: {true: {answered: cost}}; 1 for errors not named
    """

    kind = "cost"
    review: float
    costs: dict[str, dict[str, float]]

    def __post_init__(self) -> None:
        costs = [self.review, *(cost for row in self.costs.values() for cost in row.values())]
        if not all(math.isfinite(cost) and cost >= 0 for cost in costs):
            raise PolicyError(f"cost: expected costs of 0 or more, found {costs}")
        free = [name for name, row in self.costs.items() if row.get(name)]
        if free:
            raise PolicyError(f"cost: expected none for the right answer, found one for {', '.join(free)}")

    def expected(self, prediction: Prediction) -> Array:
        """(record,): the expected cost of the answer that is given."""
        answers = prediction.label_index
        return np.asarray((prediction.probs * self._matrix(prediction.classes)[:, answers].T).sum(axis=1))

    def _matrix(self, classes: tuple[str, ...]) -> Array:
        """(true, answered)."""
        named = {*self.costs, *(answered for row in self.costs.values() for answered in row)}
        unknown = named - set(classes)
        if unknown:
            raise PolicyError(f"cost: expected classes of {', '.join(classes)}, found {', '.join(sorted(unknown))}")
        return np.array([[0.0 if t == a else self.costs.get(t, {}).get(a, 1.0) for a in classes] for t in classes])

    def deferred(self, prediction: Prediction) -> Flags:
        """An expected cost above that of a review."""
        return np.asarray(self.expected(prediction) > self.review)

    def reason(self, prediction: Prediction, place: int) -> str:
        """The two costs."""
        return f"expected cost {self.expected(prediction)[place]:.3f}, a review {self.review:g}"

    def sentence(self) -> str:
        """What it does."""
        named = [f"{cost:g} for {t} answered as {a}" for t, row in self.costs.items() for a, cost in row.items()]
        errors = f" (errors cost {', '.join(named)}, others 1)" if named else " (every error costs 1)"
        return (
            "A recording goes to people when the expected cost of answering it, by calibrated probabilities, is above "
            f"that of a review, {self.review:g}{errors}."
        )


@final
@dataclass(frozen=True)
class Conformal(Policy):
    """Defer what has not exactly one class in its prediction set (split conformal, adaptive prediction sets).

    Sets hold the likeliest classes until their probabilities reach `quantile`. On recordings like those of the tune
    part the true class is in the set with a probability of at least 1 - alpha.
    """

    kind = "conformal"
    alpha: float
    quantile: float

    @classmethod
    def fitted(cls, prediction: Prediction, truth: Labels, alpha: float) -> Self:
        """The quantile of the scores of these recordings, with the correction for their number."""
        if not 0 < alpha < 1:
            raise PolicyError(f"conformal: expected an error rate between 0 and 1, found {alpha:g}")
        n = len(truth)
        rank = int(np.ceil((n + 1) * (1 - alpha)))
        scores = np.sort(_reached(prediction.probs)[np.arange(n), truth])
        return cls(alpha, float(scores[rank - 1]) if rank <= n else 1.0)

    def sets(self, prediction: Prediction) -> Flags:
        """(record, class): which classes are in each recording's set; the likeliest always is."""
        inside = _reached(prediction.probs) <= self.quantile + 1e-12
        inside[np.arange(len(prediction)), prediction.label_index] = True
        return np.asarray(inside)

    def deferred(self, prediction: Prediction) -> Flags:
        """More than one class in the set."""
        return np.asarray(self.sets(prediction).sum(axis=1) != 1)

    def reason(self, prediction: Prediction, place: int) -> str:
        """The set."""
        names = [name for name, inside in zip(prediction.classes, self.sets(prediction)[place], strict=True) if inside]
        return f"it may be {' or '.join(names)}"

    def sentence(self) -> str:
        """What it does."""
        return (
            "A recording goes to people unless one class alone is plausible; on recordings like those of the tune part "
            f"the truth is among the plausible classes in at least {1 - self.alpha:.0%} of cases."
        )


def _reached(probs: Array) -> Array:
    """(record, class): the probability of all classes that are at least as likely as this one."""
    order = np.argsort(-probs, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(probs, order, axis=1), axis=1)
    result = np.empty_like(probs)
    np.put_along_axis(result, order, reached, axis=1)
    return result


POLICIES: dict[str, type[Policy]] = {policy.kind: policy for policy in (Threshold, Budget, ExpectedCost, Conformal)}
"""Every kind of policy that a card can hold."""


def policy_from(card: Mapping[str, Any]) -> Policy:
    """The policy that a bundle's card holds."""
    fields = dict(card)
    kind = POLICIES.get(str(fields.pop("kind", "")))
    try:
        if kind is None:
            raise TypeError(f"expected the kind {', '.join(POLICIES)}")
        return kind(**fields)
    except TypeError as error:
        raise PolicyError(f"expected a policy that this version knows, found {dict(card)}: {error}") from error
