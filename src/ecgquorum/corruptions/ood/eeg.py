"""An electroencephalogram instead of an ECG."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.additive_noise import draw_envelope, shape_noise
from ecgquorum.corruptions.ood.noise import match_power
from ecgquorum.corruptions.transform import Array, Generator, SignalTransform

_BACKGROUND = {0.5: 0.05, 4.0: 0.45, 8.0: 0.25, 13.0: 0.15, 30.0: 0.1}
_ALPHA = {8.5: 0.0, 11.5: 1.0}


@dataclass(frozen=True)
class Eeg(SignalTransform):
    """Background activity with spindles of alpha rhythm, 8.5 to 11.5 Hz, with the power of the ECG it replaces."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Draw background and spindles."""
        background = shape_noise(rng, signal.shape, rate_hz, _BACKGROUND)
        spindles = shape_noise(rng, signal.shape, rate_hz, _ALPHA) * draw_envelope(rng, signal.shape[1], rate_hz, 0.8)
        return match_power(np.asarray(background / background.std() + 1.2 * spindles / spindles.std()), signal)
