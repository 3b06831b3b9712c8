"""Units of voltage, and the correction of a wrong one."""

from collections.abc import Iterable
from dataclasses import dataclass

_MILLIVOLTS = {
    "mv": 1.0,
    "millivolt": 1.0,
    "millivolts": 1.0,
    "v": 1e3,
    "volt": 1e3,
    "volts": 1e3,
    "uv": 1e-3,
    "microvolt": 1e-3,
    "microvolts": 1e-3,
    "nv": 1e-6,
    "nanovolt": 1e-6,
    "nanovolts": 1e-6,
}


def millivolts_in(unit: str) -> float | None:
    """Millivolts in one of this unit; None if it is not a unit of voltage."""
    folded = unit.strip().lower().replace("\u00b5", "u").replace("\u03bc", "u")
    return _MILLIVOLTS.get(folded)


def common_unit(units: Iterable[str | None]) -> str:
    """The unit that all leads share, in the spelling of the first; empty when they differ."""
    named = [unit or "" for unit in units]
    return named[0] if len({millivolts_in(unit) for unit in named}) == 1 else ""


@dataclass(frozen=True)
class Correction:
    """A recording was read in another unit than its source states.

    factor:    applied to the millivolts as stated
    stated_mv: typical peak-to-peak amplitude as stated
    given:     the user named the unit; otherwise it was detected
    """

    stated: str
    used: str
    factor: float
    stated_mv: float
    given: bool = False

    def __str__(self) -> str:
        why = "as given with --units" if self.given else "detected"
        return (
            f"{self.used} where it says {self.stated} ({why}): {self.stated_mv:.3g} mV from peak to peak as stated, "
            f"{self.stated_mv * self.factor:.3g} mV as read (x {self.factor:g})"
        )
