"""Predictions of an ensemble for many recordings: classes, probabilities and uncertainty."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.ensemble.risk import RiskModel
from ecgquorum.ensemble.scores import SCORE_NAMES, SCORES, one_minus_max_probability
from ecgquorum.errors import EcgQuorumError
from ecgquorum.metrics.calibration import apply_temperature
from ecgquorum.metrics.uncertainty import widen_range

if TYPE_CHECKING:
    from ecgquorum.ensemble.result import Result

Array = NDArray[np.float64]

DECIMALS = 5
"""Decimals that are printed, and on which labels and decisions are based."""

TOLERANCE = 10.0**-DECIMALS
"""Largest difference of a probability between batch sizes, thread counts, executors, processors and ONNX."""


def round_printed(values: Any) -> Array:
    """Round to the printed decimals, so that a decision agrees with the numbers beside it."""
    return np.asarray(np.round(values, DECIMALS))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Every member's probabilities for every recording, and what follows from them.

    member_probs:      (record, member, class), raw: before calibration
    information_range: (I_min, I_max), the range of mutual information that `uncertainty` is normalised by
    temperature:       that calibrates the mean probabilities; 1: none
    distance:          (record,), of the members' features from those of the training recordings; None: not fitted
    risk_model:        that estimates the risk; None: not fitted
    """

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    member_probs: Array
    information_range: tuple[float, float]
    temperature: float = 1.0
    distance: Array | None = None
    risk_model: RiskModel | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def raw_probs(self) -> Array:
        """(record, class): the mean of the members' probabilities, before calibration."""
        return np.asarray(self.member_probs.mean(axis=1))

    @property
    def probs(self) -> Array:
        """(record, class): calibrated probabilities, the mean of the members' at the fitted temperature."""
        return apply_temperature(self.raw_probs, self.temperature)

    @property
    def label_index(self) -> NDArray[np.int64]:
        """(record,): index of the class with the highest printed probability; of equal ones, the first."""
        return np.asarray(round_printed(self.probs).argmax(axis=1))

    @property
    def labels(self) -> tuple[str, ...]:
        """(record,): the most probable class, by name."""
        return tuple(self.classes[i] for i in self.label_index)

    def score(self, name: str) -> Array:
        """(record,): an uncertainty score of `SCORE_NAMES`, such as "risk"; higher where more doubtful."""
        if name == "confidence":  # calibrated, as all probabilities that are shown
            return one_minus_max_probability(self.probs[:, None])
        if name in SCORES:
            return SCORES[name](self.member_probs)
        if name not in SCORE_NAMES:
            raise EcgQuorumError(f"there is no uncertainty score {name!r}; known: {', '.join(SCORE_NAMES)}")
        values: Array | None = getattr(self, name)
        if values is None:
            missing = "a member has no features: give it embed(x), or let it end in an nn.Linear"
            unfitted = "fit it with fit_risk(ensemble, cohort) or: ecgquorum calibrate"
            raise EcgQuorumError(f"the ensemble has no score {name!r}; {missing if self.risk_model else unfitted}")
        return values

    @property
    def entropy(self) -> Array:
        """(record,): H of the raw mean probabilities, in nats."""
        return self.score("entropy")

    @property
    def mutual_information(self) -> Array:
        """(record,): I = H(mean_k p_k) - mean_k H(p_k) in nats, at least 0; it grows with the members' disagreement."""
        return self.score("mutual_information")

    @property
    def uncertainty(self) -> Array:
        """(record,): I_norm = (I - I_min) / (I_max - I_min); above 1 where members disagree more than in training."""
        low, high = self.information_range
        return np.asarray((self.mutual_information - low) / (high - low))

    @property
    def risk(self) -> Array:
        """(record,): estimated probability that the label is wrong; without a fitted model 1 - max p, calibrated."""
        if self.risk_model is None:
            return self.score("confidence")
        return self.risk_model.estimate(self.probs, self.member_probs, self.distance)

    @property
    def risk_source(self) -> str:
        """What `risk` is: "fitted", or "1 - max p" where no model was fitted."""
        return "fitted" if self.risk_model else "1 - max p"

    def results(self) -> list["Result"]:
        """One `Result` for each recording, with what the probabilities alone say, rounded to the printed decimals."""
        from ecgquorum.ensemble.result import results_from  # which needs this module

        return results_from(self)


def information_range(prediction: Prediction) -> tuple[float, float]:
    """Return (I_min, I_max) of a set of recordings; where they differ by less than 0.001 nat, (I_min, I_min + ln 2).

    A range as narrow as rounding errors would make a large uncertainty of them.
    """
    information = prediction.mutual_information
    return widen_range(float(information.min()), float(information.max()))


def robust_information_range(prediction: Prediction) -> tuple[float, float]:
    """Return (0, 99.9 % quantile of I), which no single recording decides; (0, ln 2) where it is below 0.001 nat."""
    return widen_range(0.0, float(np.quantile(prediction.mutual_information, 0.999)))
