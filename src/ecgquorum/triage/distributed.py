"""Triage by other processes or machines: a shard of recordings is read and answered there, and written down here.

The journal is this command's alone. A shard whose process or machine is lost is done again as a whole, with the same
answers, so that nothing is in the worklist twice and nothing is missing.
"""

import atexit
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache

from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import ClusterError
from ecgquorum.parallel import Executor, Task
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, is_there
from ecgquorum.recordings.sandbox import Readers, ReadOptions
from ecgquorum.triage.journal import Row
from ecgquorum.triage.policies import Policy
from ecgquorum.triage.rows import answered, grouped

SHARD = 64


def classify_distributed(
    executor: Executor,
    ensemble: Ensemble,
    policy: Policy | None,
    wanted: ReadOptions,
    n_readers: int,
    places: Sequence[RecordingPath],
) -> Iterator[list[Row]]:
    """A line for each recording, shard by shard, as they come."""
    shards = (
        Task(f"recordings {start + 1} to {min(start + SHARD, len(places))}", places[start : start + SHARD])
        for start in range(0, len(places), SHARD)
    )
    with closing(executor.run(_answered, shards, (ensemble, policy, wanted, n_readers))) as running:
        for _, (rows, unseen, host) in running:
            yield [*rows, *_gone(ensemble, policy, unseen, host)]


def _gone(ensemble: Ensemble, policy: Policy | None, unseen: Sequence[RecordingPath], host: str) -> list[Row]:
    """Lines for what has vanished since; but what is still seen here must not be written down as unreadable."""
    for place in unseen:
        if is_there(place):
            raise ClusterError(
                f"{host}: expected to see {place}, found no such file; every machine of the cluster needs the same "
                "files at the same place"
            )
    outcomes = [ReadFailure(place, f"{place}: expected a recording, found no such file") for place in unseen]
    return answered(ensemble, policy, outcomes) if outcomes else []


def _answered(
    ensemble: Ensemble, policy: Policy | None, wanted: ReadOptions, n_readers: int, places: Sequence[RecordingPath]
) -> tuple[list[Row], list[RecordingPath], str]:
    """One shard, in whatever process this is; what this machine does not see; and the machine's name."""
    there = [place for place in places if is_there(place)]
    outcomes = _readers(wanted, n_readers).outcomes(there)
    rows = [row for group in grouped(outcomes) for row in answered(ensemble, policy, group)]
    return rows, [place for place in places if place not in there], socket.gethostname()


@lru_cache(maxsize=1)
def _readers(wanted: ReadOptions, n_readers: int) -> Readers:
    """The readers of this process, kept from shard to shard: they take longer to start than to read a shard."""
    readers = Readers(wanted, n_readers)
    atexit.register(readers.__exit__)
    return readers
