"""Muscle noise: tension and tremor."""

from dataclasses import dataclass

from ecgquorum.corruptions.additive_noise import AdditiveNoise, draw_envelope, shape_noise
from ecgquorum.corruptions.transform import Array, Generator

BANDS = {2.0: 0.0, 5.0: 0.030, 10.0: 0.031, 20.0: 0.206, 40.0: 0.541, 80.0: 0.181, 180.0: 0.011}
"""Spectrum above 2 Hz, after the record ma of the MIT-BIH Noise Stress Test Database, which also has wander."""

_SPREAD = 0.35


@dataclass(frozen=True)
class Muscle(AdditiveNoise):
    """Noise from 2 Hz on, strongest between 20 and 40 Hz, waxing and waning."""

    def draw(self, rng: Generator, n_sources: int, n_samples: int, rate_hz: float) -> Array:
        """Noise with the spectrum of recorded muscles, in episodes."""
        shaped = shape_noise(rng, (n_sources, n_samples), rate_hz, BANDS)
        return shaped * draw_envelope(rng, n_samples, rate_hz, _SPREAD)
