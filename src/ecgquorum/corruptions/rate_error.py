"""Rate error: a header states a wrong sampling rate, so that the heart seems to beat faster or slower."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.time_stretch import read_at
from ecgquorum.corruptions.transform import Array, Generator


@dataclass(frozen=True)
class RateError(Corruption):
    """The stated rate is too high or, for every second recording, too low by a share of the true one.

    The length stays: a recording that becomes longer is cut, one that becomes shorter continues with its beginning.
    """

    levels = (5.0, 10.0, 20.0, 30.0, 50.0)
    unit = "% too fast or slow"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Read the recording at another speed."""
        factor = 1 + self.level / 100
        speed = factor if rng.random() < 0.5 else 1 / factor
        return read_at(signal, speed * np.arange(signal.shape[1], dtype=np.float64))
