"""A corruption: tremor of a hand that holds the electrodes."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions import Corruption
from ecgquorum.corruptions.transform import Array, Generator


@dataclass(frozen=True)
class Tremor(Corruption):
    """A sine of 4 to 7 Hz on all leads."""

    levels = (0.02, 0.05, 0.1, 0.2, 0.5)
    unit = "mV"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Add the sine."""
        time, hertz = np.arange(signal.shape[1]) / rate_hz, rng.uniform(4.0, 7.0)
        return np.asarray(signal + self.level * np.sin(2 * np.pi * hertz * time + rng.uniform(0, 2 * np.pi)))
