"""Noise without a heart."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.additive_noise import electrode_mixing, shape_noise
from ecgquorum.corruptions.transform import Array, Generator, SignalTransform

_BANDS = {0.5: 0.2, 5.0: 0.3, 40.0: 0.4, 100.0: 0.1}


def match_power(made: Array, signal: Array) -> Array:
    """Scale a made signal (lead, time) to the variance of each lead, and at least to 0.05 mV."""
    centred = made - made.mean(axis=1, keepdims=True)
    size = centred.std(axis=1, keepdims=True)
    wanted = np.maximum(signal.std(axis=1, keepdims=True), 0.05)
    return np.asarray(np.divide(centred, size, out=np.zeros_like(centred), where=size > 0) * wanted)


@dataclass(frozen=True)
class Noise(SignalTransform):
    """Broad noise with the power of the recording that it replaces."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:
        """Draw noise at every electrode."""
        mixing = electrode_mixing(leads)
        return match_power(mixing @ shape_noise(rng, (mixing.shape[1], signal.shape[1]), rate_hz, _BANDS), signal)
