"""Precordial swap: cables of chest electrodes are exchanged."""

from dataclasses import dataclass

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator

CHEST_LEADS = ("V1", "V2", "V3", "V4", "V5", "V6")

_ORDERS = {
    1: (2, 1, 3, 4, 5, 6),
    2: (2, 1, 4, 3, 5, 6),
    3: (2, 1, 4, 3, 6, 5),
    4: (6, 5, 3, 4, 2, 1),
    5: (6, 5, 4, 3, 2, 1),
}
"""Which electrode each of the leads V1 to V6 shows."""


@dataclass(frozen=True)
class PrecordialSwap(Corruption):
    """Chest leads in another order: 1 to 3 pairs of neighbours; V1 with V6 and V2 with V5; all."""

    levels = (1.0, 2.0, 3.0, 4.0, 5.0)
    unit = "(order of leads)"

    def applies_to(self, leads: tuple[str, ...]) -> bool:
        """Only to recordings with all six chest leads."""
        return set(CHEST_LEADS) <= set(leads)

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Permute the chest leads."""
        swapped = signal.copy()
        for lead, source in zip(CHEST_LEADS, _ORDERS[self.severity], strict=True):
            swapped[leads.index(lead)] = signal[leads.index(f"V{source}")]
        return swapped
