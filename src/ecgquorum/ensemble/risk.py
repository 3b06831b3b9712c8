"""The score "risk": an estimated probability that the label is wrong.

A logistic model of a few doubts, with weights of 0 or more: risk never falls where a doubt grows. `training.fit_risk`
fits it on natural, attacked and corrupted tune recordings.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from ecgquorum.errors import BundleError, EcgQuorumError
from ecgquorum.metrics.logistic import logistic
from ecgquorum.metrics.scores import mutual_information
from ecgquorum.metrics.weighting import Array

RISK_INPUTS = ("confidence", "mutual_information", "distance")
"""What the model may use."""

_SMALLEST = 1e-3  # added before logarithms and roots, so that the rounding of small probabilities does not matter

_FITTED_ON = {
    "weights_sha256": "weights",
    "temperature": "temperature",
    "classes": "classes",
    "data_hash": "data",
    "distance_sha256": "distance",
}
"""What a model is fitted on, and what messages call it."""


def risk_inputs(names: tuple[str, ...], probs: Array, member_probs: Array, distance: Array | None) -> Array:
    """(record, input): the inputs of the model; each grows with the doubt.

    confidence:         ln((q + s) / (1 - q + s)) of q = 1 - the largest calibrated probability, s = 0.001
    mutual_information: sqrt(I + s)
    distance:           max(0, ln(distance)): it counts where it is above 1, the median of natural tune recordings

    probs: (record, class), calibrated · member_probs: (record, member, class), raw · distance: (record,)
    """
    columns = []
    for name in names:
        if name == "confidence":
            doubt = 1 - probs.max(axis=1)
            columns.append(np.log((doubt + _SMALLEST) / (1 - doubt + _SMALLEST)))
        elif name == "mutual_information":
            columns.append(np.sqrt(mutual_information(member_probs) + _SMALLEST))
        elif distance is None:
            raise EcgQuorumError("the risk was fitted with a feature distance, which this prediction does not have")
        else:
            columns.append(np.log(np.maximum(distance, 1.0)))
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class RiskModel:
    """risk = 1 / (1 + exp(-intercept - sum_i coefficient_i input_i)).

    inputs:    names of `RISK_INPUTS` · coefficients: one for each, 0 or more
    fitted_on: hashes of the weights, the data and the distance; temperature; classes
    tune:      how it was fitted, and what was measured then
    """

    inputs: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float
    fitted_on: Mapping[str, Any]
    tune: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = set(self.inputs) <= set(RISK_INPUTS) and len(self.inputs) == len(self.coefficients) > 0
        if not known or not np.isfinite([self.intercept, *self.coefficients]).all() or min(self.coefficients) < 0:
            raise BundleError(
                f"expected a risk with inputs of {', '.join(RISK_INPUTS)} and coefficients of 0 or more, found "
                f"{dict(zip(self.inputs, self.coefficients, strict=False))}"
            )

    def estimate(self, probs: Array, member_probs: Array, distance: Array | None) -> Array:
        """(record,): the risk; arguments as of `risk_inputs`."""
        inputs = risk_inputs(self.inputs, probs, member_probs, distance)
        return logistic(inputs, self.intercept, np.array(self.coefficients))

    def differences(self, found: Mapping[str, Any]) -> list[str]:
        """What the model was fitted on that differs from what is found; what is not known is not compared."""
        return [
            word
            for key, word in _FITTED_ON.items()
            if key in found and json.dumps(found[key]) != json.dumps(self.fitted_on.get(key))
        ]

    @property
    def sha256(self) -> str:
        """A hash of everything that it computes with."""
        plain = {key: value for key, value in self.card().items() if key != "tune"}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

    def card(self) -> dict[str, Any]:
        """The model for a bundle's card."""
        plain = asdict(self)
        return plain | {"inputs": list(self.inputs), "coefficients": list(self.coefficients)}

    @classmethod
    def from_card(cls, card: Mapping[str, Any]) -> Self:
        """The model that `card` has written."""
        try:
            values = {**card, "inputs": tuple(card["inputs"]), "coefficients": tuple(card["coefficients"])}
            return cls(**values)
        except (KeyError, TypeError) as error:
            raise BundleError(
                f"expected a risk that this version knows; fit it again: ecgquorum calibrate: {error}"
            ) from error
