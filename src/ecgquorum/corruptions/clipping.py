"""Clipping: the amplifier saturates."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator

_PEAK = 99.5


@dataclass(frozen=True)
class Clipping(Corruption):
    """Samples beyond a share of the lead's peak (99.5 % quantile of the distance from its median) are cut off."""

    levels = (80.0, 60.0, 40.0, 20.0, 10.0)
    unit = "% of the peak is left"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Cut each lead off on both sides of its median."""
        middle = np.median(signal, axis=1, keepdims=True)
        rail = self.level / 100 * np.percentile(np.abs(signal - middle), _PEAK, axis=1, keepdims=True)
        return np.clip(signal, middle - rail, middle + rail)
