"""Quantisation: a converter with few bits, or a gain that is too low."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator


@dataclass(frozen=True)
class Quantisation(Corruption):
    """Samples are rounded to steps of this height."""

    levels = (20.0, 50.0, 100.0, 200.0, 400.0)
    unit = "µV per step"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Round to whole steps, none of which is at 0 mV: zeros at the ends of a recording mean padding."""
        step = self.level / 1000
        return (np.floor(signal / step) + 0.5) * step
