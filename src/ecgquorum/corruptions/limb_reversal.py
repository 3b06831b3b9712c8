"""Limb-lead reversal: the cables of two limbs are swapped.

With potentials RA, LA and LL: I = LA - RA, II = LL - RA, III = LL - LA. A swap permutes the limb leads and inverts some
of them. The chest leads do not change, since their reference is the mean of all three.
"""

from dataclasses import dataclass
from typing import ClassVar

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator

LIMB_LEADS = ("I", "II", "III", "aVR", "aVL", "aVF")


@dataclass(frozen=True)
class LimbReversal(Corruption):
    """Two limb cables are swapped; there or not, so all severities are the same."""

    levels = (1.0,)
    unit = "swap"

    shows: ClassVar[dict[str, tuple[float, str]]]
    """Lead -> the sign and lead that it shows after the swap."""

    def applies_to(self, leads: tuple[str, ...]) -> bool:
        """Only to recordings with all six limb leads."""
        return set(LIMB_LEADS) <= set(leads)

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Permute the limb leads."""
        swapped = signal.copy()
        for lead, (sign, source) in self.shows.items():
            swapped[leads.index(lead)] = sign * signal[leads.index(source)]
        return swapped


@dataclass(frozen=True)
class RightLeftArmReversal(LimbReversal):
    """Right arm and left arm: I inverted, II and III, aVR and aVL exchanged."""

    shows: ClassVar = {"I": (-1, "I"), "II": (1, "III"), "III": (1, "II"), "aVR": (1, "aVL"), "aVL": (1, "aVR")}


@dataclass(frozen=True)
class RightArmLegReversal(LimbReversal):
    """Right arm and left leg: II inverted, I and III exchanged and inverted, aVR and aVF exchanged."""

    shows: ClassVar = {"I": (-1, "III"), "II": (-1, "II"), "III": (-1, "I"), "aVR": (1, "aVF"), "aVF": (1, "aVR")}


@dataclass(frozen=True)
class LeftArmLegReversal(LimbReversal):
    """Left arm and left leg: III inverted, I and II, aVL and aVF exchanged."""

    shows: ClassVar = {"I": (1, "II"), "II": (1, "I"), "III": (-1, "III"), "aVL": (1, "aVF"), "aVF": (1, "aVL")}
