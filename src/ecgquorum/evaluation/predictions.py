"""Predictions of recordings whose labels are known."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ecgquorum.metrics import SCORES, Array, Flags, Labels, apply_temperature


@dataclass(frozen=True, eq=False)
class LabelledPredictions:
    """What an ensemble predicts for recordings under one condition, with their labels.

    labels:           (record,)
    raw_member_probs: (record, member, class), not calibrated
    uncertainty:      (record,), the normalised mutual information
    temperature:      of the calibrated probabilities
    fitted_scores:    (record,) each, of `FITTED_SCORES`; without those that the ensemble does not have
    """

    labels: Labels
    raw_member_probs: Array
    uncertainty: Array
    temperature: float = 1.0
    fitted_scores: Mapping[str, Array] = field(default_factory=dict)

    @property
    def raw_probs(self) -> Array:
        """(record, class): the mean of the members' probabilities, not calibrated."""
        return np.asarray(self.raw_member_probs.mean(axis=1))

    @property
    def probs(self) -> Array:
        """(record, class): the calibrated probabilities."""
        return apply_temperature(self.raw_probs, self.temperature)

    @property
    def predicted(self) -> Labels:
        """(record,): the most probable class."""
        return np.asarray(self.raw_probs.argmax(axis=1))

    @property
    def correct(self) -> Flags:
        """(record,): whether the predicted class is the label."""
        return np.asarray(self.predicted == self.labels)

    @property
    def margin(self) -> Array:
        """(record,): raw probability of the label minus that of the most probable other class."""
        probs, rows = self.raw_probs, np.arange(len(self.labels))
        others = probs.copy()
        others[rows, self.labels] = -np.inf
        return np.asarray(probs[rows, self.labels] - others.max(axis=1))

    @property
    def single_member(self) -> bool:
        """Whether there is one member only, which cannot disagree."""
        return len(self.raw_member_probs[0]) == 1

    def scores(self) -> dict[str, Array]:
        """(record,) of every uncertainty score by name."""
        return {name: score(self.raw_member_probs) for name, score in SCORES.items()} | dict(self.fitted_scores)

    def at(self, positions: Labels) -> "LabelledPredictions":
        """The predictions of some of the recordings."""
        return LabelledPredictions(
            self.labels[positions],
            self.raw_member_probs[positions],
            self.uncertainty[positions],
            self.temperature,
            {name: values[positions] for name, values in self.fitted_scores.items()},
        )
