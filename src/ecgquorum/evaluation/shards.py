"""Shards: a few recordings under one condition, attacked and classified together by any process on any machine."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecgquorum.cohorts import Batch
from ecgquorum.ensemble import Ensemble
from ecgquorum.evaluation.attack_cache import AttackJob, craft_cached
from ecgquorum.evaluation.attack_conditions import AttackCondition
from ecgquorum.evaluation.conditions import NATURAL
from ecgquorum.evaluation.data import EvaluationData
from ecgquorum.evaluation.transform_conditions import TransformCondition
from ecgquorum.metrics import Array
from ecgquorum.parallel import Executor, Task
from ecgquorum.storage import FileStore
from ecgquorum.training import choose_device

_SIZE = 32


@dataclass(frozen=True, eq=False)
class EvaluationContext:
    """What all shards of an evaluation share.

    changes: for each condition its attack, corruption or set; None for natural recordings
    records: for each condition the positions of the recordings that it covers
    cache:   store of attacked recordings
    device:  of an executor's processes: auto, cpu or cuda
    """

    ensembles: list[Ensemble]
    data: EvaluationData
    changes: list[AttackCondition | TransformCondition | None]
    records: list[NDArray[np.int64]]
    seed: int
    cache: FileStore | None
    device: str

    def job(self, number: int, e: int) -> AttackJob | None:
        """The attack of a condition on an ensemble; None for natural and for corrupted recordings."""
        attack = self.changes[number]
        return AttackJob(attack, self.ensembles[e], self.seed) if isinstance(attack, AttackCondition) else None


@dataclass(frozen=True)
class Shard:
    """Some recordings under one condition.

    number: of the condition
    group:  numbers of the ensembles that share the attacked recordings, whose hash is `key`
    start:  of the shard among the condition's recordings, sorted by length
    rows:   the recordings, as rows among the condition's recordings
    shown:  those of them whose signal is wanted
    """

    number: int
    group: tuple[int, ...]
    key: str
    start: int
    rows: tuple[int, ...]
    shown: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ShardResult:
    """What each ensemble gives for each record, and the signals that are wanted, by row.

    probs: raw probabilities (record, member, class) · distances: (record,), NaN where none is fitted
    """

    probs: dict[int, Array]
    distances: dict[int, Array]
    shown: dict[int, Batch]


def plan_shards(context: EvaluationContext, number: int, shown: Iterable[int] = ()) -> Iterator[Shard]:
    """Divide a condition's recordings into small batches of similar lengths, attacked once for each group of ensembles.

    shown: positions of the recordings whose signals are wanted as the first ensemble is given them
    """
    positions = context.records[number]
    groups: dict[str, list[int]] = {}
    for e, ensemble in enumerate(context.ensembles):
        job = context.job(number, e)
        groups.setdefault(job.key(context.data, positions) if job else repr(ensemble.input), []).append(e)
    wanted = {int(row) for row in np.flatnonzero(np.isin(positions, list(shown)))}
    order = context.data.by_length(positions).tolist()
    for key, group in groups.items():
        for start in range(0, len(order), _SIZE):
            rows = tuple(order[start : start + _SIZE])
            visible = tuple(row for row in rows if row in wanted) if 0 in group else ()
            yield Shard(number, tuple(group), key, start, rows, visible)


def predict_shards(
    context: EvaluationContext, shards: Iterable[Shard], executor: Executor | None
) -> Iterator[tuple[Shard, ShardResult]]:
    """Attack and classify every shard: in this process in order, or by the executor in any order."""
    if executor is None:
        for shard in shards:
            yield shard, _predict_shard(context, shard)
        return
    devices = [ensemble.device for ensemble in context.ensembles]
    for ensemble in context.ensembles:
        ensemble.to("cpu")  # so that it can be sent to other machines
    tasks = (Task(_describe_shard(context, shard), shard) for shard in shards)
    with closing(executor.run(_predict_on_device, tasks, (context,))) as running:
        for task, result in running:
            yield task.item, result
    for ensemble, device in zip(context.ensembles, devices, strict=True):
        ensemble.to(device)


def _describe_shard(context: EvaluationContext, shard: Shard) -> str:
    change = context.changes[shard.number]
    return f"{change.condition if change else NATURAL}, ensemble {shard.group[0]}, recordings from {shard.start}"


def _predict_on_device(context: EvaluationContext, shard: Shard) -> ShardResult:
    for ensemble in context.ensembles:
        ensemble.to(choose_device(context.device))
    return _predict_shard(context, shard)


def _predict_shard(context: EvaluationContext, shard: Shard) -> ShardResult:
    first = context.ensembles[shard.group[0]]
    positions = context.records[shard.number][list(shard.rows)]
    change = context.changes[shard.number]
    if isinstance(change, TransformCondition):
        signals = context.data.change(positions, shard.rows, change, context.seed)
        batch = context.data.make_batch(signals, positions, first.input).to(first.device)
    else:
        batch = context.data.batch(positions, first.input).to(first.device)
    job = context.job(shard.number, shard.group[0])
    if job:
        covered = context.records[shard.number]
        batch = craft_cached(
            job, batch, shard.key, shard.start, context.cache, lambda one: one.key(context.data, covered)
        )
    places = {row: shard.rows.index(row) for row in shard.shown}
    outputs = {e: context.ensembles[e].member_outputs(batch) for e in shard.group}
    return ShardResult(
        {e: probs for e, (probs, _) in outputs.items()},
        {e: distances for e, (_, distances) in outputs.items()},
        {row: Batch(*(part[place : place + 1].cpu() for part in batch)) for row, place in places.items()},
    )
