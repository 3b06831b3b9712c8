"""Triage any number of files: read, classify, decide, write a worklist; may be killed and continued.

DIR/journal.sqlite  every result so far; a later call continues from it
DIR/worklist.csv    recordings for people first, the highest risk at the top; then the certain ones
DIR/worklist.jsonl  the same with all probabilities
DIR/worklist.html   the same as a page
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.predict_files import group_outcomes
from ecgquorum.errors import TriageError
from ecgquorum.parallel import Executor
from ecgquorum.preprocessing.prepare import ReadOptions, read_recordings
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, discover_recordings, is_settled
from ecgquorum.recordings.sandbox import LIMITS, SandboxLimits
from ecgquorum.triage.decide import make_entries
from ecgquorum.triage.distributed import classify_distributed
from ecgquorum.triage.journal import Journal, JournalEntry
from ecgquorum.triage.policies import Policy


def triage_files(
    ensemble: Ensemble,
    policy: Policy | None,
    paths: Iterable[str | Path],
    out: str | Path,
    *,
    options: ReadOptions | None = None,
    limits: SandboxLimits = LIMITS,
    progress: Progress = NO_PROGRESS,
    only_settled: bool = False,
    executor: Executor | None = None,
) -> Journal:
    """Classify every recording that is new or has changed; returns the journal, from which the worklist is written.

    policy:       which recordings go to people; None: only those of doubtful quality, until `write_worklist` applies a
                  budget
    limits:       of the processes that read; for each process of the executor, where there is one
    executor:     where to read and classify; None: this process and its readers
    only_settled: leave out files that changed a moment ago and headers without their signal
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise TriageError(f"{out}: expected a folder, found a file")
    options = options or ReadOptions(ensemble.input)
    defaults = options.defaults
    about = {
        "model": ensemble.card.get("weights_sha256", ""),
        "risk": ensemble.risk_model.sha256 if ensemble.risk_model else "",
        "policy": policy.card() if policy else None,
        "lead": options.lead,
        "defaults": [defaults.rate_hz, list(defaults.leads or ()), defaults.units],
    }
    journal = Journal(out / "journal.sqlite", about)
    own = out.resolve() / "worklist.csv"  # which could be taken for a recording
    waiting = [found for found in discover_recordings(paths, exclude=own, allow_empty=True) if not _has(journal, found)]
    if only_settled:
        waiting = [found for found in waiting if isinstance(found, RecordingPath) and is_settled(found)]
    done = len(journal)
    total = done + len(waiting)
    for entries in _classify(ensemble, policy, options, limits, waiting, executor):
        journal.add(entries)
        done += len(entries)
        progress.update("recordings", done, total)
    return journal


def _has(journal: Journal, found: RecordingPath | ReadFailure) -> bool:
    return journal.has(str(found), found.stamp) if isinstance(found, RecordingPath) else journal.has(found.source, "")


def _classify(
    ensemble: Ensemble,
    policy: Policy | None,
    options: ReadOptions,
    limits: SandboxLimits,
    waiting: Sequence[RecordingPath | ReadFailure],
    executor: Executor | None,
) -> Iterator[list[JournalEntry]]:
    """Entries for all recordings, a group at a time."""
    missing = [found for found in waiting if isinstance(found, ReadFailure)]
    paths = [found for found in waiting if isinstance(found, RecordingPath)]
    if missing:
        yield make_entries(ensemble, policy, [""] * len(missing), missing)
    if executor and paths:
        yield from classify_distributed(executor, ensemble, policy, options, limits, paths)
        return
    stamps = iter([path.stamp for path in paths])
    for group in group_outcomes(read_recordings(paths, options, limits=limits)):
        yield make_entries(ensemble, policy, [next(stamps) for _ in group], group)
