"""Pacing spikes: the pulses of a pacemaker that does not capture the heart."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator

_WIDTH_S = 0.002


@dataclass(frozen=True)
class PacingSpikes(Corruption):
    """Regular pulses of 2 ms, 50 to 80 a minute, of one polarity on each lead."""

    levels = (0.5, 1.0, 2.0, 4.0, 8.0)
    unit = "mV"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Add the pulses; between samples a pulse is as high as the share of the sample that it fills."""
        period_s = 60 / rng.uniform(50.0, 80.0)
        starts = np.arange(rng.uniform(0, period_s), signal.shape[1] / rate_hz, period_s)
        width = _WIDTH_S * rate_hz
        places = np.floor(starts * rate_hz).astype(int)
        sizes = rng.uniform(0.5, 1.0, (len(signal), 1)) * rng.choice([-1.0, 1.0], (len(signal), 1))
        pulses = np.zeros(signal.shape[1])
        for offset in range(max(1, round(width))):
            pulses[np.minimum(places + offset, len(pulses) - 1)] = min(1.0, width)
        return np.asarray(signal + self.level * sizes * pulses)
