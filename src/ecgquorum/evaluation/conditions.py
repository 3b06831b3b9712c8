"""Under what conditions ensembles are tested: natural recordings, then every attack at every strength."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.recipes import AttackRecipe, EvaluationRecipe

NATURAL = "natural"
WORST, MIXED, MASKING = "worst of all", "mixed", "masking"
"""Not crafted but derived from the others: what goes most wrong, some of each; or looked at by themselves."""

MEMBERS = "members"
"""As a target: what is measured of members, not of an attack."""

N_MIXED = 3


@dataclass(frozen=True)
class Condition:
    """An attack by its name in tables, what it was crafted on, and its strength in the units of the input.

    records: how many recordings it was crafted for; None: for all of the part
    """

    attack: str = NATURAL
    target: str = ""
    epsilon: float = 0.0
    records: int | None = None

    def __str__(self) -> str:
        return self.attack if self.attack == NATURAL else f"{self.attack} on {self.target}, {self.epsilon:g}"


def plan_conditions(evaluation: EvaluationRecipe) -> list[tuple[Condition, AttackRecipe | None]]:
    """Natural first, then attack by attack, from weak to strong; each with the recipe it comes from."""
    planned: list[tuple[Condition, AttackRecipe | None]] = [(Condition(), None)]
    for recipe in evaluation.attacks:
        strengths = sorted(set(recipe.epsilons or evaluation.epsilons or ()))
        planned += [(Condition(recipe.name, recipe.target, epsilon, recipe.records), recipe) for epsilon in strengths]
    return planned


def mixtures(conditions: Sequence[Condition]) -> list[tuple[str, str, tuple[int, ...]]]:
    """Attacks that can be mixed with natural recordings: name, target and the numbers of the three weakest strengths.

    An attack that was crafted for some recordings only cannot.
    """
    found = []
    for attack, target in dict.fromkeys((c.attack, c.target) for c in conditions if c.attack != NATURAL):
        numbers = [i for i, c in enumerate(conditions) if (c.attack, c.target, c.records) == (attack, target, None)]
        if len(numbers) >= N_MIXED:
            found.append((attack, target, tuple(sorted(numbers, key=lambda i: conditions[i].epsilon)[:N_MIXED])))
    return found


def choose_records(n_part: int, records: int | None, seed: int) -> NDArray[np.int64]:
    """Places in the part of `records` recordings drawn at random, in order; fewer are always among more."""
    if records is None or records >= n_part:
        return np.arange(n_part)
    return np.sort(numpy_generator(seed, "evaluated records").permutation(n_part)[:records])
