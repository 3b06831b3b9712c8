"""A few recordings under one condition: attacked, where it is an attack, and answered by whom the attack is meant for.

Each such shard stands for itself, so that any process of any machine can do it; what it crafts is kept in the store,
and a shard that is done again finds it there.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecgquorum.cohorts import Batch, Cohort
from ecgquorum.ensemble import Ensemble
from ecgquorum.evaluation.attack_cache import Crafting, craft_cached
from ecgquorum.evaluation.conditions import Condition
from ecgquorum.parallel import Executor, Task
from ecgquorum.recipes import AttackRecipe
from ecgquorum.training.jobs import choose_device

_SIZE = 32


@dataclass(frozen=True, eq=False)
class EvaluationContext:
    """What all shards of an evaluation have in common.

    indices: of the part's recordings in the cohort
    records: for each condition of the plan the places in the part that it covers
    device:  where other processes compute: auto, cpu or cuda; here it is where the ensembles are
    """

    ensembles: list[Ensemble]
    cohort: Cohort
    indices: NDArray[np.int64]
    plan: list[tuple[Condition, AttackRecipe | None]]
    records: list[NDArray[np.int64]]
    seed: int
    store: Path | None
    device: str

    def crafting(self, number: int, e: int) -> Crafting | None:
        """The attack of a condition on an ensemble; None where recordings are natural."""
        condition, recipe = self.plan[number]
        return Crafting(recipe, condition.epsilon, self.ensembles[e], self.seed) if recipe else None


@dataclass(frozen=True)
class Shard:
    """Some recordings under one condition.

    group:  the numbers of the ensembles that share what is crafted, and `key` is the hash of that
    start:  where they begin among the condition's recordings, in the order of their lengths
    places: which they are, among the condition's recordings
    drawn:  those of them whose signal is wanted
    """

    number: int
    group: tuple[int, ...]
    key: str
    start: int
    places: tuple[int, ...]
    drawn: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Answered:
    """What was said of a shard's recordings: each ensemble's (record, member, class), and the signals to be drawn."""

    probs: dict[int, NDArray[np.float64]]
    drawn: dict[int, Batch]


def plan_shards(sitting: EvaluationContext, number: int, drawn: Iterable[int] = ()) -> Iterator[Shard]:
    """A condition's recordings in small batches of like lengths; what several ensembles share is crafted once.

    drawn: places in the part of the recordings whose signals are wanted, as the first ensemble is given them
    """
    places = sitting.records[number]
    indices = sitting.indices[places]
    groups: dict[str, list[int]] = {}
    for e, ensemble in enumerate(sitting.ensembles):
        crafting = sitting.crafting(number, e)
        key = crafting.key(sitting.cohort, indices) if crafting else repr(ensemble.input)
        groups.setdefault(key, []).append(e)
    wanted = {int(row) for row in np.flatnonzero(np.isin(places, list(drawn)))}
    order = sitting.cohort.by_length(indices).tolist()
    for key, group in groups.items():
        for start in range(0, len(order), _SIZE):
            some = tuple(order[start : start + _SIZE])
            shown = tuple(row for row in some if row in wanted) if 0 in group else ()
            yield Shard(number, tuple(group), key, start, some, shown)


def predict_shards(
    sitting: EvaluationContext, shards: Iterable[Shard], executor: Executor | None
) -> Iterator[tuple[Shard, Answered]]:
    """Every shard's answers: here, one after another, or by the executor, as they come."""
    if executor is None:
        for shard in shards:
            yield shard, _answered(sitting, shard)
        return
    devices = [next(ensemble.parameters()).device for ensemble in sitting.ensembles]
    for ensemble in sitting.ensembles:
        ensemble.to("cpu")  # as which it can be sent anywhere
    tasks = (Task(f"{sitting.plan[s.number][0]}, ensemble {s.group[0]}, recordings from {s.start}", s) for s in shards)
    with closing(executor.run(_answered_elsewhere, tasks, (sitting,))) as running:
        for task, said in running:
            yield task.item, said
    for ensemble, device in zip(sitting.ensembles, devices, strict=True):
        ensemble.to(device)


def _answered_elsewhere(sitting: EvaluationContext, shard: Shard) -> Answered:
    for ensemble in sitting.ensembles:
        ensemble.to(choose_device(sitting.device))
    return _answered(sitting, shard)


def _answered(sitting: EvaluationContext, shard: Shard) -> Answered:
    first = sitting.ensembles[shard.group[0]]
    indices = sitting.indices[sitting.records[shard.number][list(shard.places)]]
    batch = sitting.cohort.batch(indices, first.input).to(next(first.parameters()).device)
    crafting = sitting.crafting(shard.number, shard.group[0])
    if crafting:
        batch = craft_cached(crafting, batch, shard.key, shard.start, sitting.store)
    rows = {place: shard.places.index(place) for place in shard.drawn}
    return Answered(
        {e: sitting.ensembles[e].member_probs(batch) for e in shard.group},
        {place: Batch(*(part[row : row + 1].cpu() for part in batch)) for place, row in rows.items()},
    )
