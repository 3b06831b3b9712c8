"""Electrode motion: the skin is stretched below an electrode, in the frequencies of the ECG itself."""

from dataclasses import dataclass

from ecgquorum.corruptions.additive_noise import AdditiveNoise, draw_envelope, shape_noise
from ecgquorum.corruptions.transform import Array, Generator

BANDS = {
    0.1: 0.024,
    0.5: 0.592,
    1.0: 0.078,
    2.0: 0.141,
    5.0: 0.100,
    10.0: 0.044,
    20.0: 0.015,
    40.0: 0.004,
    180.0: 0.002,
}
"""Spectrum, after the record em of the MIT-BIH Noise Stress Test Database."""

_SPREAD = 0.5


@dataclass(frozen=True)
class ElectrodeMotion(AdditiveNoise):
    """Waves that look like beats, waxing and waning."""

    def draw(self, rng: Generator, n_sources: int, n_samples: int, rate_hz: float) -> Array:
        """Noise with the spectrum of recorded motion, in episodes."""
        shaped = shape_noise(rng, (n_sources, n_samples), rate_hz, BANDS)
        return shaped * draw_envelope(rng, n_samples, rate_hz, _SPREAD)
