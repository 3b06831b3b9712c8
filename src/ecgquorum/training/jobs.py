"""The training jobs of a run: which members are trained when, from which weights, and with whose features.

A job is known by a hash of everything that determines its result, so that runs share the jobs that they have in common:
`baseline`, `dec` and `part` have the same first member.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ecgquorum.training.phase import Phase
from ecgquorum.training.plan import TrainingPlan

TRAINING_FORMAT = 5
"""Raise this when a change of the code gives other weights, so that a store does not serve outdated ones."""


@dataclass(frozen=True)
class TrainingJob:
    """The training of one member in one phase, or of all members together.

    identity:  hash of everything that determines the result
    epochs:    how long it trains
    continues: jobs whose weights it starts from, one per member; empty for initial weights
    earlier:   for each member, the jobs whose members' outputs its strategy uses
    """

    phase: str
    members: tuple[int, ...]
    identity: str
    epochs: int
    continues: tuple[str, ...] = ()
    earlier: tuple[tuple[str, ...], ...] = ()

    @property
    def needs(self) -> frozenset[str]:
        """Identities of the jobs that must be finished before it can start."""
        return frozenset((*self.continues, *(identity for earlier in self.earlier for identity in earlier)))

    @property
    def label(self) -> str:
        """The member's number from 0, or `all`."""
        return str(self.members[0]) if len(self.members) == 1 else "all"

    @property
    def title(self) -> str:
        """How progress and tasks name it."""
        who = f"member {self.label}" if len(self.members) == 1 else "all members"
        return who if self.phase == "base" else f"{who} ({self.phase})"


def plan_jobs(plan: TrainingPlan, data_hash: str) -> list[TrainingJob]:
    """Return the jobs of a run, each after those that it needs."""
    base: list[TrainingJob] = []
    first, *further = plan.phases()
    for index in range(plan.recipe.members):
        base.append(_base_job(plan, first, index, data_hash, tuple(job.identity for job in base)))
    jobs, latest = list(base), list(base)
    for phase in further:
        if phase.joint:
            made = [_further_job(phase, tuple(range(len(base))), latest, base)]
            latest = made * len(base)
        else:
            made = [_further_job(phase, (index,), [latest[index]], [base[index]]) for index in range(len(base))]
            latest = made
        jobs += made
    return jobs


def _base_job(plan: TrainingPlan, phase: Phase, index: int, data_hash: str, trained: tuple[str, ...]) -> TrainingJob:
    recipe = plan.recipe
    described = {part: found for part in plan.strategy.parts if (found := part.describe(index)) is not None}
    earlier = trained if any(part.uses_earlier_members for part in described) else ()
    facts = {
        "seed": recipe.seed,
        "data": data_hash,
        "index": index,
        "input": recipe.input.model_dump(exclude={"leads"}),
        "member": recipe.member.model_dump(),
        "training": recipe.training.model_dump(),
        "strategies": {part.name: found for part, found in described.items()},
        "earlier": earlier,
    }
    return TrainingJob("base", (index,), _identity("base", facts), phase.epochs, (), (earlier,))


def _further_job(
    phase: Phase, members: tuple[int, ...], before: list[TrainingJob], base: list[TrainingJob]
) -> TrainingJob:
    """Return the job of a later phase; what else determines it is in the identities of the jobs that it continues."""
    continues = tuple(job.identity for job in before)
    facts = {
        "kind": f"{type(phase).__module__}:{type(phase).__qualname__}",
        "parameters": phase.parameters,
        "members": members,
        "continues": continues,
    }
    identity = _identity(phase.name, facts)
    return TrainingJob(phase.name, members, identity, phase.epochs, continues, tuple(job.earlier[0] for job in base))


def _identity(phase: str, facts: dict[str, Any]) -> str:
    known = {"format": TRAINING_FORMAT, "phase": phase, **facts}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
