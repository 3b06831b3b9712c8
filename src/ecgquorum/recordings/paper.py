"""ECG paper: squares of a millimetre, every fifth line thick, and how much of it a second and a millivolt take."""

from dataclasses import dataclass

SMALL_MM, LARGE_MM = 1, 5
SPEEDS_MM_PER_S, GAINS_MM_PER_MV = (12.5, 25.0, 50.0), (5.0, 10.0, 20.0)
PULSE_MV, PULSE_S = 1.0, 0.2
"""The calibration pulse."""


@dataclass(frozen=True)
class Scale:
    """How large time and voltage are drawn."""

    mm_per_s: float = 25.0
    mm_per_mv: float = 10.0

    def __str__(self) -> str:
        return f"{self.mm_per_s:g} mm/s, {self.mm_per_mv:g} mm/mV"


STANDARD = Scale()
