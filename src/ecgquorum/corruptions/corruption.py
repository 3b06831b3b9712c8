"""What a corruption is: a disturbance of recordings with five severities in physical terms."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ecgquorum.corruptions.transform import SignalTransform
from ecgquorum.errors import CorruptionError

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Corruption(SignalTransform):
    """A disturbance that devices, electrodes or people cause.

    severity: 1 to 5; with the same generator, the same disturbance grows with it

    levels:   what the severities mean, in `unit`; a disturbance that is there or not has one level
    """

    severity: int = 3

    levels: ClassVar[tuple[float, ...]]
    unit: ClassVar[str]

    def __post_init__(self) -> None:
        whole = isinstance(self.severity, int | np.integer) and not isinstance(self.severity, bool)
        if not whole or self.severity not in SEVERITIES:
            raise CorruptionError(f"{type(self).__name__}: expected a severity from 1 to 5, found {self.severity!r}")

    @property
    def level(self) -> float:
        """The severity in `unit`."""
        return self.levels[self.severity - 1] if len(self.levels) > 1 else self.levels[0]

    def __str__(self) -> str:
        return f"{self.level:g} {self.unit}".strip()
