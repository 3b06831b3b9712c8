"""Example recordings that show what an attack does to a trace."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ecgquorum.metrics import Flags, Labels

N_EXAMPLES, EXAMPLE_S = 3, 6.0


@dataclass(frozen=True, eq=False)
class Example:
    """The beginning of a recording on one lead, natural and attacked, in millivolts.

    position:  of the recording among the evaluated ones
    attacked:  number of the condition -> the attacked stretch
    ensembles: number of the condition -> the ensembles that were given exactly this trace; for others the attack was
               crafted on another model
    """

    position: int
    id: str
    lead: str
    rate_hz: float
    natural: NDArray[np.float32] = field(repr=False)
    attacked: dict[int, NDArray[np.float32]] = field(repr=False)
    ensembles: dict[int, tuple[str, ...]]


def choose_positions(labels: Labels, n_classes: int, eligible: Flags, all_correct: Flags) -> list[int]:
    """Choose one eligible recording of each of the first classes, one that all ensembles get right if there is one."""
    chosen: list[int] = []
    for label in range(n_classes):
        positions = np.flatnonzero((labels == label) & eligible)
        if len(positions) and len(chosen) < N_EXAMPLES:
            chosen.append(int(next((p for p in positions if all_correct[p]), positions[0])))
    return chosen
