"""Time stretch: the speed of a recorder's clock, tape or paper varies."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator

_PERIOD_S = (3.0, 10.0)


@dataclass(frozen=True)
class TimeStretch(Corruption):
    """The speed swings around the true one, by up to this share, with a period of 3 to 10 s."""

    levels = (2.0, 5.0, 10.0, 20.0, 35.0)
    unit = "% variation of speed"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Read the recording with a speed of 1 + level sin(2 pi t / period)."""
        time, period = np.arange(signal.shape[1]) / rate_hz, rng.uniform(*_PERIOD_S)
        phase = rng.uniform(0, 2 * np.pi)
        swing = self.level / 100 * period / (2 * np.pi)
        moved = time + swing * (np.cos(phase) - np.cos(2 * np.pi * time / period + phase))
        return read_at(signal, moved * rate_hz)


def read_at(signal: Array, places: Array) -> Array:
    """Interpolate (lead, time) between its samples at these places, from 0; beyond its end it begins again."""
    n_samples = signal.shape[1]
    before = np.floor(places).astype(int)
    share = places - before
    return np.asarray((1 - share) * signal[:, before % n_samples] + share * signal[:, (before + 1) % n_samples])
