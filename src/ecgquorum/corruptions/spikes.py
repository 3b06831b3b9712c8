"""Spikes: electrostatic discharges and switching, a few samples wide."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator

_WIDTH_S = 0.008
_SIZE_MV = (1.0, 3.0)


@dataclass(frozen=True)
class Spikes(Corruption):
    """Spikes of 1 to 3 mV at random times, up or down, on all leads with random sizes."""

    levels = (0.1, 0.2, 0.5, 1.0, 2.0)
    unit = "spikes a second"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Add spikes; a higher severity adds further ones."""
        n_leads, n_samples = signal.shape
        most = max(1, round(max(self.levels) * n_samples / rate_hz))
        starts = rng.integers(n_samples, size=most)
        sizes = rng.uniform(*_SIZE_MV, (most, n_leads)) * rng.choice([-1.0, 1.0], (most, 1))
        width = max(1, round(_WIDTH_S * rate_hz))
        disturbed = signal.copy()
        for start, size in list(zip(starts, sizes, strict=True))[: max(1, round(self.level * n_samples / rate_hz))]:
            stretch = disturbed[:, start : start + width]
            stretch[:] = signal[:, start : start + width] + size[:, None]
        return np.asarray(disturbed)
