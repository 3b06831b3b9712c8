"""Triage by other processes or machines: shards of recordings are read and classified there.

Only this command writes the journal. A shard whose process or machine is lost is done again as a whole, so that nothing
is in the worklist twice and nothing is missing.
"""

import atexit
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache

from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.predict_files import Outcome, group_outcomes
from ecgquorum.errors import ClusterError
from ecgquorum.parallel import Executor, Task
from ecgquorum.preprocessing.prepare import ReadOptions, reading_sandbox
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, exists
from ecgquorum.recordings.remote_files import fetch_recordings
from ecgquorum.recordings.sandbox import Sandbox, SandboxLimits
from ecgquorum.triage.decide import Rules, make_entries
from ecgquorum.triage.journal import JournalEntry

SHARD = 64


def classify_distributed(
    executor: Executor | None,
    ensemble: Ensemble,
    rules: Rules,
    options: ReadOptions,
    limits: SandboxLimits,
    paths: Sequence[RecordingPath],
) -> Iterator[list[JournalEntry]]:
    """Entries for all recordings, a shard at a time, in the order in which they are finished.

    executor: None: one shard after another in this process
    """
    shards = (
        Task(f"recordings {start + 1} to {min(start + SHARD, len(paths))}", paths[start : start + SHARD])
        for start in range(0, len(paths), SHARD)
    )
    common = (ensemble, rules, options, limits)
    here = ((shard, _classify_shard(*common, shard.item)) for shard in shards)
    with closing(executor.run(_classify_shard, shards, common) if executor else here) as running:
        for _, (entries, unseen, host) in running:
            yield [*entries, *_missing_entries(ensemble, rules, unseen, host)]


def _missing_entries(
    ensemble: Ensemble, rules: Rules, unseen: Sequence[RecordingPath], host: str
) -> list[JournalEntry]:
    """Entries for files that were deleted meanwhile; files that this machine still sees are an error of the cluster."""
    for path in unseen:
        if exists(path):
            raise ClusterError(
                f"{host}: expected to see {path}, found no such file; every machine of the cluster needs the same "
                "files at the same path"
            )
    failures = [ReadFailure(str(path), f"{path}: expected a recording, found no such file") for path in unseen]
    return make_entries(ensemble, rules, [path.stamp for path in unseen], failures) if failures else []


def _classify_shard(
    ensemble: Ensemble,
    rules: Rules,
    options: ReadOptions,
    limits: SandboxLimits,
    paths: Sequence[RecordingPath],
) -> tuple[list[JournalEntry], list[RecordingPath], str]:
    """Entries of one shard, the files that this machine does not see, and its name."""
    entries: list[JournalEntry] = []
    with fetch_recordings(paths) as here:
        seen = [path for path in here if exists(path)]
        stamps = iter([path.stamp for path in seen])
        for group in group_outcomes(_sandbox(options, limits).run(seen)):
            entries += make_entries(ensemble, rules, [next(stamps) for _ in group], group)
    return entries, [path for path in here if path not in seen], socket.gethostname()


@lru_cache(maxsize=1)
def _sandbox(options: ReadOptions, limits: SandboxLimits) -> Sandbox[Outcome]:
    """The readers of this process, kept between shards: starting them takes longer than reading a shard."""
    sandbox = reading_sandbox(options, limits)
    atexit.register(sandbox.close)
    return sandbox
