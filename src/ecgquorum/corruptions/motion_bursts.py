"""Motion bursts: the patient moves for a few seconds, and nothing can be read while it lasts."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.additive_noise import electrode_mixing, scale_to_snr, shape_noise
from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.stretches import cover_share
from ecgquorum.corruptions.transform import Array, Generator

SNR_DB = -9.0
"""Inside a burst."""

_SECONDS = (0.5, 3.0)
_BANDS = {0.5: 0.1, 2.0: 0.3, 10.0: 0.3, 40.0: 0.25, 100.0: 0.05}


@dataclass(frozen=True)
class MotionBursts(Corruption):
    """Bursts of broad noise at -9 dB that cover a share of the recording."""

    levels = (5.0, 10.0, 20.0, 35.0, 60.0)
    unit = "% of the time at -9 dB SNR"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:
        """Add noise of the electrodes inside bursts of 0.5 to 3 s."""
        mixing = electrode_mixing(leads)
        noise = mixing @ shape_noise(rng, (mixing.shape[1], signal.shape[1]), rate_hz, _BANDS)
        inside = cover_share(rng, signal.shape[1], rate_hz, _SECONDS, self.level / 100)
        return np.asarray(signal + scale_to_snr(noise, signal, SNR_DB) * inside)
