"""Baseline wander: breathing and slow drift of the electrodes' potential."""

from dataclasses import dataclass

from ecgquorum.corruptions.additive_noise import AdditiveNoise, shape_noise
from ecgquorum.corruptions.transform import Array, Generator

BANDS = {0.1: 0.096, 0.5: 0.888, 1.0: 0.010, 2.0: 0.004, 5.0: 0.001, 180.0: 0.001}
"""Spectrum, after the record bw of the MIT-BIH Noise Stress Test Database."""


@dataclass(frozen=True)
class BaselineWander(AdditiveNoise):
    """Drift with nearly all of its power below 0.5 Hz."""

    def draw(self, rng: Generator, n_sources: int, n_samples: int, rate_hz: float) -> Array:
        """Noise with the spectrum of recorded wander."""
        return shape_noise(rng, (n_sources, n_samples), rate_hz, BANDS)
