"""Independent members: nothing is added to plain training."""

from dataclasses import dataclass
from typing import final

from ecgquorum.training.strategies.strategy import Strategy


@final
@dataclass(frozen=True)
class Baseline(Strategy):
    """Train members independently, from different initial weights; the neutral element of `+`."""

    @property
    def parts(self) -> tuple[Strategy, ...]:
        """Nothing is added."""
        return ()
