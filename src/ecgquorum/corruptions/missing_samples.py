"""Missing samples: a connection that loses packets."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.stretches import cover_share
from ecgquorum.corruptions.transform import Array, Generator

_SECONDS = (0.1, 1.0)


@dataclass(frozen=True)
class MissingSamples(Corruption):
    """Stretches of all leads are missing: NaN in a recording, interpolated in an array."""

    levels = (2.0, 5.0, 10.0, 20.0, 40.0)
    unit = "% of the samples"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Lose stretches of 0.1 to 1 s."""
        return np.where(cover_share(rng, signal.shape[1], rate_hz, _SECONDS, self.level / 100), np.nan, signal)
