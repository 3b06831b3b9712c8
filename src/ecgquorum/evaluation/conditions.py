"""Conditions of an evaluation: natural recordings, attacks, corruptions, and recordings of no class of the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.recipes.study import NATURAL as NATURAL

WORST, MIXED, MASKING = "worst of all", "mixed", "masking"
"""Derived conditions: the worst attack for each recording among all that the ensemble was evaluated under, natural and
attacked recordings mixed, masking checks."""

SHARED_WORST = "worst of the shared attacks"
"""The same among the attacks under which every ensemble of a merged scorecard was evaluated, where these are fewer."""

WORST_KINDS = (WORST, SHARED_WORST)

ENSEMBLE = "ensemble"
"""The target of attacks on the whole ensemble."""

MEMBERS = "members"
"""The target of rows about members instead of an attack."""

CORRUPTION = "corruption"
"""The target of corruptions, whose strength is the severity, 1 to 5."""

ALL_CORRUPTIONS = "all corruptions"
"""The mean over severities, then over corruptions."""

OOD = "out of distribution"
"""The target of sets of recordings that are no ECG of the model's classes."""

RESERVED_NAMES = (NATURAL, WORST, SHARED_WORST, MASKING, ALL_CORRUPTIONS)
"""Names in tables that no attack or corruption can have."""

N_MIXED = 3


@dataclass(frozen=True)
class Condition:
    """An attack by its name in tables, the model it was crafted on, and its strength in the units of the input.

    A corruption has the target "corruption" and its severity as strength, a set of other recordings "out of
    distribution".

    records: how many recordings it was crafted for; None: all
    """

    attack: str = NATURAL
    target: str = ""
    epsilon: float = 0.0
    records: int | None = None

    @property
    def is_attack(self) -> bool:
        """Whether it is an attack: neither natural, nor a corruption, nor out of distribution."""
        return self.attack != NATURAL and self.target not in (CORRUPTION, OOD)

    def __str__(self) -> str:
        if self.target == CORRUPTION:
            return f"{self.attack}, severity {self.epsilon:g}"
        if self.target == OOD:
            return f"{self.attack} ({OOD})"
        return self.attack if self.attack == NATURAL else f"{self.attack} on {self.target}, {self.epsilon:g}"


def find_mixtures(conditions: Sequence[Condition]) -> list[tuple[str, str, tuple[int, ...]]]:
    """Attacks that can be mixed with natural recordings: name, target, and numbers of the three weakest conditions.

    An attack that was crafted for some recordings only cannot be mixed.
    """
    found = []
    for attack, target in dict.fromkeys((c.attack, c.target) for c in conditions if c.is_attack):
        numbers = [i for i, c in enumerate(conditions) if (c.attack, c.target, c.records) == (attack, target, None)]
        if len(numbers) >= N_MIXED:
            found.append((attack, target, tuple(sorted(numbers, key=lambda i: conditions[i].epsilon)[:N_MIXED])))
    return found


def choose_records(n_records: int, wanted: int | None, seed: int) -> NDArray[np.int64]:
    """Positions of `wanted` recordings drawn at random, in order; a smaller draw is contained in a larger one."""
    if wanted is None or wanted >= n_records:
        return np.arange(n_records)
    return np.sort(numpy_generator(seed, "evaluated records").permutation(n_records)[:wanted])
