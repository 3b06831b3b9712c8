"""A device that is switched on and attached to nobody."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.transform import Array, Generator, SignalTransform

_NOISE_MV = 0.003


@dataclass(frozen=True)
class Flat(SignalTransform):
    """A constant with the noise of an amplifier, 3 µV."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Draw the constant and the noise."""
        offset = rng.uniform(-0.2, 0.2, (len(signal), 1))
        return np.asarray(offset + rng.normal(0, _NOISE_MV, signal.shape))
