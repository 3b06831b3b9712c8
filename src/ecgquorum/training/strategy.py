"""A strategy as the trainings it takes: who is trained when, from what, against whom.

Every member is first trained by itself (`base`). `adv` then goes on with each member, `dverge` with all of them
together. `dec` adds its term to every training of a member, against the features of the members before it as they were
after their `base` training, on clean recordings; `part` decides what each member hears.

A training is known by a hash of everything that determines it, so that two strategies that have one in common train it
once.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

from ecgquorum.recipes import Recipe, TrainingRecipe

TRAINING_FORMAT = 2
"""To be raised when a change of the code gives other weights: a store must not serve what is no longer trained."""

PhaseName = Literal["base", "adv", "dverge"]


@dataclass(frozen=True)
class Unit:
    """One training: of one member, or of all together.

    continues: the trainings whose weights it begins with, one a member; empty for fresh weights
    against:   for each member, the trainings whose stored features it is decorrelated from
    """

    phase: PhaseName
    members: tuple[int, ...]
    identity: str
    continues: tuple[str, ...] = ()
    against: tuple[tuple[str, ...], ...] = ()

    @property
    def needs(self) -> frozenset[str]:
        """The trainings that must be finished before it can begin."""
        return frozenset((*self.continues, *(identity for against in self.against for identity in against)))

    @property
    def label(self) -> str:
        """What to call it in histories and progress: the member's number from 0, or `all`."""
        return str(self.members[0]) if len(self.members) == 1 else "all"


def plan_jobs(recipe: Recipe, data_hash: str) -> list[Unit]:
    """The trainings that a recipe's strategy takes, in an order in which each finds what it needs."""
    parts = recipe.parts
    base: list[Unit] = []
    for index in range(recipe.members):
        earlier = tuple(unit.identity for unit in base) if "dec" in parts else ()
        facts = {
            "seed": recipe.seed,
            "data": data_hash,
            "index": index,
            "input": recipe.input.model_dump(),
            "member": recipe.member.model_dump(),
            "training": recipe.training.model_dump(),
            "bands": recipe.bands_of(index),
        }
        base.append(_unit("base", (index,), facts, recipe, (), (earlier,)))
    units, latest = list(base), base
    if "adv" in parts:
        facts = {"adversarial": recipe.adversarial.model_dump()}
        latest = [_unit("adv", u.members, facts, recipe, (u.identity,), u.against) for u in base]
        units += latest
    if "dverge" in parts:
        facts = {"dverge": recipe.dverge.model_dump()}
        everyone = tuple(range(recipe.members))
        against = tuple(unit.against[0] for unit in base)
        continues = tuple(unit.identity for unit in latest)
        units.append(_unit("dverge", everyone, facts, recipe, continues, against))
    return units


def plan_phase(recipe: Recipe, phase: PhaseName) -> TrainingRecipe:
    """How long and how fast a phase trains; batches, crops and the rest are the same for all."""
    if phase == "base":
        return recipe.training
    part = recipe.adversarial if phase == "adv" else recipe.dverge
    return recipe.training.model_copy(update={"epochs": part.epochs, "learning_rate": part.learning_rate})


def _unit(
    phase: PhaseName,
    members: tuple[int, ...],
    facts: dict[str, Any],
    recipe: Recipe,
    continues: tuple[str, ...],
    against: tuple[tuple[str, ...], ...],
) -> Unit:
    known = {"format": TRAINING_FORMAT, "phase": phase, **facts, "continues": continues}
    if any(against):
        known |= {"decorrelation": recipe.decorrelation.model_dump(), "against": against}
    identity = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    return Unit(phase, members, identity, continues, against)
