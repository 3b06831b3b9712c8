"""Triage any number of files: read, classify, decide, write a worklist; may be killed and continued.

DIR/journal.sqlite  every result so far; a later call continues from it
DIR/worklist.csv    recordings for people first, urgent classes and the highest risk at the top; then certain ones,
                    files that cannot be read, and files that are no recordings
DIR/worklist.jsonl  the same with all probabilities
DIR/worklist.html   the same as a page
DIR/plots           recordings on ECG paper
DIR/triage.log      what was done, and when
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.predict_files import group_outcomes
from ecgquorum.ensemble.result import UNREADABLE, failed_result, skipped_result
from ecgquorum.errors import TriageError
from ecgquorum.parallel import Executor
from ecgquorum.preprocessing.input_spec import WHOLE_WINDOWS, Windowing
from ecgquorum.preprocessing.prepare import ANY_RECORDING, ReadOptions, read_recordings
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recordings.discovery import Discovery, RecordingPath, is_settled, list_everything, skip_segments
from ecgquorum.recordings.sandbox import LIMITS, SandboxLimits
from ecgquorum.storage import is_url, parse_location
from ecgquorum.triage.decide import Rules, make_entries
from ecgquorum.triage.distributed import classify_distributed
from ecgquorum.triage.journal import Journal, JournalEntry
from ecgquorum.triage.policies import Policy
from ecgquorum.triage.remote_output import PARTS, open_journal
from ecgquorum.triage.urgency import Urgency, urgency_of

_OWN_FILES = {
    "triage.log",
    *(f"journal.sqlite{suffix}" for suffix in ("", "-journal", "-wal", "-shm")),
    *(f"worklist.{kind}" for kind in ("csv", "jsonl", "html")),
}
_OWN_FOLDERS = {"plots": ".png", "fhir": ".ndjson", PARTS: ".jsonl"}


@dataclass(frozen=True)
class TriageOptions:
    """How files are found, read and sorted.

    read:         how recordings are read; `spec` is that of the ensemble in any case
    limits:       of the processes that read; for each process of the executor, where there is one
    urgency:      which classes are urgent; None: what the ensemble's card says
    windowing:    how long recordings are split
    ignore:       patterns of files to leave out, such as *.txt
    only_settled: leave out files that changed a moment ago and headers without their signal
    """

    read: ReadOptions = ANY_RECORDING
    limits: SandboxLimits = LIMITS
    urgency: Urgency | None = None
    windowing: Windowing = WHOLE_WINDOWS
    ignore: tuple[str, ...] = ()
    only_settled: bool = False


DEFAULT_OPTIONS = TriageOptions()


def triage_files(
    ensemble: Ensemble,
    policy: Policy | None,
    paths: Iterable[str | Path],
    out: str | Path,
    options: TriageOptions = DEFAULT_OPTIONS,
    *,
    progress: Progress = NO_PROGRESS,
    executor: Executor | None = None,
) -> Journal:
    """Classify every recording that is new or has changed; returns the journal, from which the worklist is written.

    Every file at the paths has an entry: one that cannot be read, and one that is no recording, with the reason.

    policy:   which recordings go to people; None: only those of doubtful quality and those that the urgency sends,
              until `write_worklist` applies a budget
    executor: where to read and classify; None: this process and its readers
    out:      a folder, or the URL of one; see `publish_output`
    """
    out = parse_location(out)
    if isinstance(out, Path) and out.exists() and not out.is_dir():
        raise TriageError(f"{out}: expected a folder, found a file")
    options = replace(
        options, read=replace(options.read, spec=ensemble.input), urgency=options.urgency or urgency_of(ensemble)
    )
    options.windowing.check(ensemble.input)
    journal = open_journal(out, _describe(ensemble, policy, options))
    folder = out.resolve() if isinstance(out, Path) else Path(out)
    found = list_everything(paths, options.ignore, lambda path: _is_own(folder, path))
    waiting = [path for path in found.recordings if not journal.has(str(path), path.stamp)]
    if options.only_settled:
        waiting = [path for path in waiting if is_settled(path)]
    _add_unread(journal, found, options.ignore, progress)
    done = len(journal)
    total = done + len(waiting)
    for entries in _classify(ensemble, policy, options, waiting, executor):
        journal.add(entries)
        for entry in entries:
            if entry.result.decision == UNREADABLE:
                progress.log(f"unreadable: {entry.result.source}: {entry.result.reason}")
        done += len(entries)
        progress.update("recordings", done, total)
    if waiting:
        _add_unread(
            journal, found, options.ignore, progress
        )  # with the segments of records that turned out to be unreadable
    return journal


def _describe(ensemble: Ensemble, policy: Policy | None, options: TriageOptions) -> dict[str, Any]:
    """What results depend on; those of a folder must agree in it."""
    read, windowing = options.read, options.windowing
    return {
        "model": ensemble.card.get("weights_sha256", ""),
        "calibration": [ensemble.temperature, *ensemble.information_range],
        "risk": ensemble.risk_model.sha256 if ensemble.risk_model else "",
        "policy": policy.card() if policy else None,
        "urgency": options.urgency.card() if options.urgency else None,
        "windowing": [windowing.window_s, windowing.stride_s],
        "lead": read.lead,
        "identify": read.identify,
        "measure": read.measure,
        "defaults": [read.defaults.rate_hz, list(read.defaults.leads or ()), read.defaults.units],
    }


def _is_own(folder: Path, path: Path) -> bool:
    """Whether triage itself wrote the file, which could be taken for a recording or counted as skipped."""
    if folder not in path.parents:
        return False
    first, *inner = path.relative_to(folder).parts
    if path.name.startswith(".") and path.name.endswith(".partial"):  # a write that was killed
        return True
    return path.suffix == _OWN_FOLDERS.get(first) if len(inner) == 1 else not inner and first in _OWN_FILES


def _add_unread(journal: Journal, found: Discovery, ignore: Sequence[str], progress: Progress) -> None:
    """Add entries for paths that do not exist, files that are no recordings, and segments of records that are refused.

    A multi-segment record that cannot be read may have sound segments, which discovery did not list.
    """
    journal.failures, journal.n_ignored = found.failures, found.n_ignored
    refused = journal.list_failures()
    segments = [one for path in found.recordings if str(path) in refused for one in skip_segments(path, ignore)]
    unread = [one for one in segments if not journal.is_read(one.source)]
    results = [*map(failed_result, found.failures), *map(skipped_result, (*found.skipped, *unread))]
    for result in journal.replace_unread(results):
        progress.log(f"{result.decision}: {result.source}: {result.reason}")


def _classify(
    ensemble: Ensemble,
    policy: Policy | None,
    options: TriageOptions,
    paths: Sequence[RecordingPath],
    executor: Executor | None,
) -> Iterator[list[JournalEntry]]:
    """Entries for all recordings, a group at a time."""
    rules = Rules(policy, options.urgency, options.windowing)
    if paths and (executor or any(is_url(path.tree) for path in paths)):
        yield from classify_distributed(executor, ensemble, rules, options.read, options.limits, paths)
        return
    stamps = iter([path.stamp for path in paths])
    for group in group_outcomes(read_recordings(paths, options.read, limits=options.limits)):
        yield make_entries(ensemble, rules, [next(stamps) for _ in group], group)
