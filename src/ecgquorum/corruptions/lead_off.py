"""Lead off: the reference electrode loses contact for one long stretch, and all leads stay at a constant."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.stretches import hold_values
from ecgquorum.corruptions.transform import Array, Generator


@dataclass(frozen=True)
class LeadOff(Corruption):
    """One stretch, as a share of the recording, in which the last value is held."""

    levels = (5.0, 10.0, 20.0, 40.0, 70.0)
    unit = "% of the recording"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Hold the value around a random centre; the stretch moves inside where it would leave the recording."""
        n_samples = signal.shape[1]
        length = max(1, round(self.level / 100 * n_samples))
        centre = rng.uniform() * n_samples
        start = int(np.clip(centre - length / 2, 0, n_samples - length))
        lost = np.zeros(n_samples, dtype=bool)
        lost[start : start + length] = True
        return hold_values(signal, lost)
