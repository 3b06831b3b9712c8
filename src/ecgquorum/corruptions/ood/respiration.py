"""A respiration belt instead of an ECG."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.ood.noise import match_power
from ecgquorum.corruptions.transform import Array, Generator, SignalTransform


@dataclass(frozen=True)
class Respiration(SignalTransform):
    """12 to 20 breaths a minute of varying depth, with a little noise, with the power of the ECG it replaces."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Draw the breaths; inspiration is faster than expiration."""
        n_samples = signal.shape[1]
        hertz = rng.uniform(0.2, 0.33) + np.cumsum(rng.normal(0, 0.03 / np.sqrt(rate_hz), n_samples))
        phase = 2 * np.pi * np.cumsum(np.abs(hertz)) / rate_hz + rng.uniform(0, 2 * np.pi)
        breath = np.sin(phase + 0.4 * np.sin(phase))
        depth = rng.uniform(0.6, 1.0, (len(signal), 1))
        return match_power(depth * breath + rng.normal(0, 0.02, signal.shape), signal)
