"""Triage of any number of files: read apart, classify, decide, write a worklist; may be killed and gone on with.

DIR/journal.sqlite  every answer so far, which a later call goes on from
DIR/worklist.csv    what goes to people first, the most uncertain at the top; then what is certain
DIR/worklist.jsonl  the same with every probability
DIR/worklist.html   the same to look at
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import TriageError
from ecgquorum.parallel import Executor
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, discover_recordings, is_settled
from ecgquorum.recordings.sandbox import Outcome, ReadOptions, read_sandboxed
from ecgquorum.triage.distributed import classify_distributed
from ecgquorum.triage.journal import Journal, Row
from ecgquorum.triage.policies import Policy
from ecgquorum.triage.rows import answered, grouped

Told = Callable[[int, int], None]
"""How many recordings are behind us, and of how many."""


def triage_files(
    ensemble: Ensemble,
    policy: Policy | None,
    paths: Iterable[str | Path],
    out: str | Path,
    *,
    wanted: ReadOptions | None = None,
    n_readers: int = 2,
    told: Told | None = None,
    only_settled: bool = False,
    executor: Executor | None = None,
) -> Journal:
    """Answer every recording that is new or has changed; gives the journal, from which the worklist is written.

    policy:       which of them go to people; None: only those of doubtful quality, until the worklist rations them
    n_readers:    processes that read; for each process of the executor's, where there is one
    executor:     who reads and answers; None: this process and its readers
    only_settled: leave alone what may still be on its way: files changed a moment ago, headers without their signal
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise TriageError(f"{out}: expected a folder, found a file")
    wanted = wanted or ReadOptions(ensemble.input)
    about = {
        "model": ensemble.card.get("weights_sha256", ""),
        "policy": policy.card() if policy else None,
        "lead": wanted.lead,
        "hints": [wanted.hints.rate_hz, list(wanted.hints.leads or ()), wanted.hints.units],
    }
    journal = Journal(out / "journal.sqlite", about)
    own = out.resolve() / "worklist.csv"  # which could be taken for a recording
    waiting = [found for found in discover_recordings(paths, without=own) if not journal.has(_place(found))]
    if only_settled:
        waiting = [place for place in waiting if isinstance(place, RecordingPath) and is_settled(place)]
    lost = [place for place in waiting if isinstance(place, ReadFailure)]
    there = [place for place in waiting if isinstance(place, RecordingPath)]
    done = len(journal)
    total = done + len(waiting)
    for rows in _answers(ensemble, policy, wanted, n_readers, lost, there, executor):
        journal.add(rows)
        done += len(rows)
        if told:
            told(done, total)
    return journal


def _place(found: RecordingPath | ReadFailure) -> RecordingPath:
    return found if isinstance(found, RecordingPath) else found.place


def _answers(
    ensemble: Ensemble,
    policy: Policy | None,
    wanted: ReadOptions,
    n_readers: int,
    lost: Sequence[ReadFailure],
    there: Sequence[RecordingPath],
    executor: Executor | None,
) -> Iterator[list[Row]]:
    """Lines for all of them, some at a time."""
    if executor and there:
        if lost:
            yield answered(ensemble, policy, lost)
        yield from classify_distributed(executor, ensemble, policy, wanted, n_readers, there)
        return
    outcomes = _chained(lost, read_sandboxed(there, wanted, n_readers=n_readers) if there else iter(()))
    for group in grouped(outcomes):
        yield answered(ensemble, policy, group)


def _chained(lost: Sequence[ReadFailure], read: Iterator[Outcome]) -> Iterator[Outcome]:
    yield from lost
    yield from read
