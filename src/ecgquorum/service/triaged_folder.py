"""Open a triaged folder at the desk: with the results that triage stored; nothing is classified again."""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.predict_files import Outcome
from ecgquorum.ensemble.result import SKIPPED, UNREADABLE, Result
from ecgquorum.errors import DeskError, RecordingError
from ecgquorum.preprocessing.prepare import ReadOptions, reading_sandbox
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, locate, open_cached
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.sandbox import LIMITS, SandboxLimits
from ecgquorum.recordings.wfdb_files import list_files
from ecgquorum.service.desk import Desk
from ecgquorum.service.files import StoredFile
from ecgquorum.service.http_errors import DiskFullError, HttpError
from ecgquorum.service.store import queue, recordings
from ecgquorum.service.store.recordings import IncomingFile
from ecgquorum.service.store.reviews import visible_state
from ecgquorum.service.store.tables import State
from ecgquorum.service.store.tokens import TRIAGE
from ecgquorum.service.uploads import check_acceptable, check_quota, clean_name, inspect_file
from ecgquorum.service.worker import TRACE_BYTES, rename_result, store_trace
from ecgquorum.triage.journal import read_facts
from ecgquorum.triage.worklist import read_worklist

_PIECE_BYTES = 1 << 20


@dataclass
class OpeningReport:
    """What became of the files of a triaged folder.

    added:     new recordings by state · n_known: recordings that the desk had before
    n_skipped: files that are no recordings
    problems:  one line for each recording that is not at the desk: missing, changed, not accepted
    """

    added: Counter[str] = field(default_factory=Counter)
    n_known: int = 0
    n_skipped: int = 0
    problems: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        """The counts on one line."""
        parts = [f"{sum(self.added.values())} recordings opened"]
        parts[0] += f" ({', '.join(f'{n} {state}' for state, n in self.added.items())})" if self.added else ""
        counts = {"at the desk before": self.n_known, "no recordings": self.n_skipped}
        parts += [f"{n} {words}" for words, n in counts.items() if n]
        return ", ".join([*parts, *([f"{len(self.problems)} left out"] if self.problems else [])])


@dataclass(frozen=True)
class _Candidate:
    """A result whose files are as they were, and are not at the desk yet; `hashes` of each file."""

    result: Result
    path: RecordingPath
    names: tuple[str, ...]
    hashes: tuple[str, ...]

    @property
    def identity(self) -> str:
        return recordings.content_identity(self.hashes)


class TriagedFolder:
    """The output of `ecgquorum triage SOURCE --out FOLDER`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.worklist = self.folder / "worklist.jsonl"
        missing = [path.name for path in (self.worklist, self.folder / "journal.sqlite") if not path.is_file()]
        if missing:
            raise DeskError(
                f"{folder}: expected a triaged folder, found no {' and no '.join(missing)}; "
                "make one with: ecgquorum triage SOURCE --out DIR"
            )
        self.facts = read_facts(self.folder / "journal.sqlite")

    def check_model(self, ensemble: Ensemble) -> None:
        """Raise unless the results are of this model."""
        card, risk = ensemble.card, ensemble.risk_model.sha256 if ensemble.risk_model else ""
        name, sha256 = card.get("name", "the desk's model"), str(card.get("weights_sha256", ""))
        if self.facts["model"] != sha256:
            raise DeskError(
                f"{self.folder}: was triaged by another model ({self.facts['model'][:12]}) than {name} "
                f"({sha256[:12]}); open it with the --model that triaged it"
            )
        calibration = [ensemble.temperature, *ensemble.information_range]
        if self.facts["calibration"] != calibration or self.facts["risk"] != risk:
            raise DeskError(
                f"{self.folder}: was triaged with another calibration or risk of {name}; "
                "open it with the bundle that triaged it"
            )

    def open_at(self, desk: Desk, progress: Progress = NO_PROGRESS, limits: SandboxLimits = LIMITS) -> OpeningReport:
        """Add the recordings to the desk, each with its result; those that the desk has are left as they are.

        Files are found at the paths in the results, read again for the viewer, and copied to the desk's folder. One
        that is missing, or whose content is no longer what was classified, is not added.
        """
        self.check_model(desk.ensemble)
        report, waiting = OpeningReport(), deque[_Candidate]()
        rate_hz, leads, units = self.facts["defaults"]
        defaults = FileDefaults(rate_hz, tuple(leads) or None, units)
        options = ReadOptions(defaults=defaults, recording_bytes=TRACE_BYTES, identify=True)

        def paths() -> Iterator[RecordingPath]:
            for one in self._candidates(desk, report, progress):
                waiting.append(one)
                yield one.path

        with reading_sandbox(options, limits) as readers:
            for outcome in readers.run(paths()):
                _add_recording(desk, waiting.popleft(), outcome, report)
        return report

    def _candidates(self, desk: Desk, report: OpeningReport, progress: Progress) -> Iterator[_Candidate]:
        """The results to open; what cannot be opened is noted in the report."""
        with self.worklist.open("rb") as lines:
            total = sum(1 for _ in lines)
        for done, result in enumerate(read_worklist(self.worklist), start=1):
            progress.update("opening", done, total)
            if result.decision == SKIPPED:
                report.n_skipped += 1
                continue
            try:
                found = _find_files(result)
            except (RecordingError, OSError, ValueError) as error:
                report.problems.append(str(error) if result.source in str(error) else f"{result.source}: {error}")
                continue
            with desk.store.read_session() as session:
                row = recordings.find_content(session, found.identity)
            if row is None or row.state == State.WAITING:
                yield found
            else:
                report.n_known += 1


def _find_files(result: Result) -> _Candidate:
    """The files of a result; raises if one is missing, or if their content is not what was classified."""
    path = locate(result.source)
    tree = open_cached(path.tree)
    names = tuple(list_files(tree, path.name))
    missing = [name for name in names if tree.size(name) is None]
    if missing:
        raise RecordingError(f"{result.source}: missing: {', '.join(missing)}")
    together, hashes = hashlib.sha256(), []
    for name in names:
        one = hashlib.sha256()
        for piece in _pieces(tree, name):
            one.update(piece)
            together.update(piece)
        hashes.append(one.hexdigest())
    if together.hexdigest() != result.sha256:
        raise RecordingError(f"{result.source}: has changed since it was triaged; triage it again")
    return _Candidate(result, path, names, tuple(hashes))


def _pieces(tree: FileTree, name: str) -> Iterator[bytes]:
    with tree.open(name) as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def _add_recording(desk: Desk, one: _Candidate, outcome: Outcome, report: OpeningReport) -> None:
    """Copy the files of a recording, and add it with its result in one transaction."""
    source = one.result.source
    try:
        if isinstance(outcome, ReadFailure) and one.result.decision != UNREADABLE:
            raise RecordingError(f"could not be read again: {outcome.reason.removeprefix(f'{source}: ')}")
        incoming = asyncio.run(_copy_files(desk, one))
        with desk.store.write_session() as session:
            now = desk.store.now()
            for file in incoming:
                row, _ = recordings.add_file(session, now, TRIAGE, file)
            if row.identity != one.identity:
                raise RecordingError("has changed while it was copied; triage it again")
            if row.state != State.WAITING:
                report.n_known += 1
                return
            row.worker = TRIAGE
            session.flush()
            result, trace = rename_result(one.result, one.path, row), store_trace(desk, row.id, outcome)
            desk.files.sync_traces()
            queue.store_result(session, now, TRIAGE, result, trace, desk.audit_sample, TRIAGE)
        report.added[visible_state(row)] += 1
    except DiskFullError:
        raise
    except (HttpError, RecordingError) as error:
        report.problems.append(f"{source}: {str(error).removeprefix(f'{source}: ')}")


async def _copy_files(desk: Desk, one: _Candidate) -> list[IncomingFile]:
    """Store the files as an upload would; all are checked before the first is stored."""
    tree = open_cached(one.path.tree)
    names = [clean_name(PurePosixPath(name).name) for name in one.names]
    sizes = [tree.size(name) or 0 for name in one.names]
    limits = [check_acceptable(desk, *pair) for pair in zip(names, sizes, strict=True)]
    check_quota(desk, TRIAGE, sum(sizes))
    incoming = []
    for inner, name, limit in zip(one.names, names, limits, strict=True):
        kept: StoredFile = await desk.files.store(_stream(tree, inner), limit)
        incoming.append(inspect_file(desk, name, kept))
    return incoming


async def _stream(tree: FileTree, name: str) -> AsyncIterator[bytes]:
    for piece in _pieces(tree, name):
        yield piece
