"""Mains hum: 50 or 60 Hz with harmonics."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.additive_noise import AdditiveNoise
from ecgquorum.corruptions.transform import Array, Generator

_HARMONICS = (1.0, 0.1, 0.3, 0.05, 0.1)
"""Amplitudes of the mains frequency and its multiples; odd ones are stronger."""


@dataclass(frozen=True)
class Mains(AdditiveNoise):
    """Hum of one phase whose amplitude differs between electrodes.

    mains_hz: 50 or 60; None: drawn for each recording
    """

    mains_hz: float | None = None

    def draw(self, rng: Generator, n_sources: int, n_samples: int, rate_hz: float) -> Array:
        """Harmonics below half of the sampling rate; a rate that is too low for the mains frequency has its alias."""
        chosen = float(rng.choice([50.0, 60.0])) if self.mains_hz is None else self.mains_hz
        time = np.arange(n_samples) / rate_hz
        hum = np.zeros(n_samples)
        for number, size in enumerate(_HARMONICS, start=1):
            phase = rng.uniform(0, 2 * np.pi)
            if number == 1 or number * chosen < rate_hz / 2:
                hum += size * np.sin(2 * np.pi * number * chosen * time + phase)
        sizes = rng.uniform(0.3, 1.0, n_sources) * rng.choice([-1.0, 1.0], n_sources)
        return np.asarray(np.multiply.outer(sizes, hum))
