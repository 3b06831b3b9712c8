"""Missing leads: electrodes were not attached, or cables are broken."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator


@dataclass(frozen=True)
class MissingLeads(Corruption):
    """So many leads of twelve are missing, and as large a share of fewer; one lead is always left.

    NaN in a recording; in an array a limb lead is derived from two others where it can be, else it is zero.
    """

    levels = (1.0, 2.0, 4.0, 6.0, 9.0)
    unit = "of 12 leads"

    def applies_to(self, leads: tuple[str, ...]) -> bool:
        """Not to recordings of one lead."""
        return len(leads) > 1

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Remove random leads."""
        wanted = int(np.clip(round(self.level * len(leads) / 12), 1, len(leads) - 1))
        partial = signal.copy()
        partial[rng.permutation(len(leads))[:wanted]] = np.nan
        return partial
