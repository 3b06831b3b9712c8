"""Amplitude error: a header states a wrong gain."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator


@dataclass(frozen=True)
class AmplitudeError(Corruption):
    """All samples are multiplied or, for every second recording, divided by a factor."""

    levels = (1.25, 1.5, 2.0, 3.0, 5.0)
    unit = "times too large or small"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Scale the recording."""
        return np.asarray(signal * (self.level if rng.random() < 0.5 else 1 / self.level))
