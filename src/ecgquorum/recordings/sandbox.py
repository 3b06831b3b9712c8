"""Recordings read in processes of their own, within limits of time and memory, so that no file can stop a batch."""

import hashlib
import multiprocessing
import resource
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Self

import numpy as np

from ecgquorum.errors import EcgQuorumError, RecordingError
from ecgquorum.parallel.process_guard import die_with_parent
from ecgquorum.preprocessing.input_spec import InputSpec, Signal, select_leads
from ecgquorum.preprocessing.quality import Quality, assess_quality
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, opened
from ecgquorum.recordings.file_defaults import NO_DEFAULTS, FileDefaults
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.readers import files_of, read_from
from ecgquorum.recordings.recording import Recording, one_line

PATIENCE_S = 20.0
MEMORY_BYTES = 1 << 30
_START_S = 300.0
_AHEAD = 4
_READY = "ready"
_TRACE_S, _TRACE_POINTS = 8.0, 800


@dataclass(frozen=True, eq=False)
class PreparedRecording:
    """A recording, ready to be classified.

    signal: as the model wants it · sha256: of its files
    trace:  the beginning of its first lead in microvolts, for a picture
    whole:  the recording as it was read, where it is wanted
    """

    place: RecordingPath
    id: str
    signal: Signal
    seconds: float
    quality: Quality
    sha256: str
    trace: list[int]
    trace_s: float
    whole: Recording | None = None


Outcome = PreparedRecording | ReadFailure


@dataclass(frozen=True)
class ReadOptions:
    """What every reader must know: the model's input, the lead to take, what the user says of bare files.

    whole_bytes: hand back recordings as they were read, of each no more than so many bytes from its beginning
    """

    spec: InputSpec
    lead: str | None = None
    hints: FileDefaults = NO_DEFAULTS
    whole_bytes: int = 0


class _Reader:
    """One process, and what it is reading."""

    def __init__(self, wanted: ReadOptions, patience_s: float, memory_bytes: int) -> None:
        self._wanted, self._patience_s, self._memory_bytes = wanted, patience_s, memory_bytes
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, self._wanted, self._memory_bytes)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.task: tuple[int, RecordingPath] | None = None
        self._is_ready = False
        self.deadline = time.monotonic() + _START_S

    def give(self, number: int, place: RecordingPath) -> None:
        """Have it read a recording; its clock begins when the process has begun."""
        try:
            self.connection.send(place)
        except OSError:  # it died while it had nothing to do
            self.replace()
            self.connection.send(place)
        self.task = (number, place)
        self.deadline = time.monotonic() + (self._patience_s if self._is_ready else _START_S)

    def received(self) -> Outcome | None:
        """What it says of its recording; None when it only says that it has begun."""
        said: Outcome | str = self.connection.recv()
        if isinstance(said, str):
            self._is_ready, self.deadline = True, time.monotonic() + self._patience_s
            return None
        return said

    def replace(self) -> None:
        """Kill the process and begin another."""
        self.stop()
        self._start()

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self.connection.close()


class Readers:
    """Processes that read recordings, kept for as long as they are needed; use as a context.

    One that takes longer than `patience_s`, wants more memory than `memory_bytes`, or crashes, costs its recording and
    nothing else.
    """

    def __init__(
        self,
        wanted: ReadOptions,
        n_readers: int = 2,
        patience_s: float = PATIENCE_S,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._readers = [_Reader(wanted, patience_s, memory_bytes) for _ in range(n_readers)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers:
            reader.stop()

    def outcomes(self, places: Iterable[RecordingPath]) -> Iterator[Outcome]:
        """Every place's outcome, in the order of the places; a few are read ahead of the one that is waited for."""
        remaining = iter(enumerate(places))
        done: dict[int, Outcome] = {}
        next_out, begun, exhausted = 0, 0, False
        idle = deque(self._readers)
        while not exhausted or next_out < begun:
            while idle and not exhausted and begun - next_out < _AHEAD * len(self._readers):
                following = next(remaining, None)
                if following is None:
                    exhausted = True
                    break
                idle.popleft().give(*following)
                begun += 1
            for reader, outcome in _finished([r for r in self._readers if r.task is not None]):
                assert reader.task is not None  # noqa: S101
                done[reader.task[0]] = outcome
                reader.task = None
                idle.append(reader)
            while next_out in done:
                yield done.pop(next_out)
                next_out += 1


def read_sandboxed(
    places: Iterable[RecordingPath],
    wanted: ReadOptions,
    *,
    n_readers: int = 2,
    patience_s: float = PATIENCE_S,
    memory_bytes: int = MEMORY_BYTES,
) -> Iterator[Outcome]:
    """Every place's outcome, in the order of the places, by readers that are started for them alone."""
    with Readers(wanted, n_readers, patience_s, memory_bytes) as readers:
        yield from readers.outcomes(places)


def _finished(busy: list[_Reader]) -> Iterator[tuple[_Reader, Outcome]]:
    """Readers that are done, that died, or whose time is over."""
    if not busy:
        return
    first = min(reader.deadline for reader in busy)
    ready = wait([reader.connection for reader in busy], max(0.0, first - time.monotonic()))
    for reader in busy:
        place = reader.task[1] if reader.task else RecordingPath("", "")
        if reader.connection in ready:
            try:
                outcome = reader.received()
            except (EOFError, OSError):
                task = reader.task
                reader.replace()
                reader.task = task
                outcome = ReadFailure(place, f"{place}: expected to read it, found that it crashes its reader")
            if outcome is not None:
                yield reader, outcome
        elif time.monotonic() >= reader.deadline:
            task = reader.task
            reader.replace()
            reader.task = task
            yield reader, ReadFailure(place, f"{place}: expected to read it in time, found that it takes too long")


def _serve(connection: Connection, wanted: ReadOptions, memory_bytes: int) -> None:
    """Read what is asked for until nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the parent, which ends its readers
    die_with_parent()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if _has_proc() else 0
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))
    with suppress(EOFError, OSError):  # the parent is gone
        connection.send(_READY)
        while True:
            connection.send(_outcome(connection.recv(), wanted))


def _has_proc() -> bool:
    return Path("/proc/self/statm").is_file()


def _outcome(place: RecordingPath, wanted: ReadOptions) -> Outcome:
    digest = ""
    try:
        tree = opened(place.tree)
        digest = _digest(tree, place.name)
        recording = read_from(tree, place.name, wanted.hints)
        chosen = select_leads(recording, wanted.spec.leads, wanted.lead)
        signal = wanted.spec.fit(recording, wanted.lead)
        trace, trace_s = _trace(chosen)
        whole = _beginning(recording, wanted.whole_bytes) if wanted.whole_bytes else None
        return PreparedRecording(
            place, recording.id, signal, recording.seconds, assess_quality(chosen), digest, trace, trace_s, whole
        )
    except Exception as error:  # a file must not stop the batch, whatever a parser makes of it
        if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
            reason = f"{place}: expected to read it within the memory that a reader has, found that it needs more"
        elif isinstance(error, EcgQuorumError):
            reason = str(error)
        else:
            reason = f"{place}: expected to read it, found: {one_line(error)}"
        return ReadFailure(place, reason, digest)


def _digest(tree: FileTree, name: str) -> str:
    """SHA-256 over the recording's files, one after another."""
    digest = hashlib.sha256()
    found = [file for file in files_of(tree, name) if tree.size(file) is not None]
    if not found:
        raise RecordingError(f"{tree.where(name)}: expected a recording, found no such file")
    for file in found:
        with tree.open(file) as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _trace(recording: Recording) -> tuple[list[int], float]:
    """The beginning of the first lead for a small picture: microvolts, a few hundred points."""
    n_shown = min(recording.n_samples, round(_TRACE_S * recording.rate_hz))
    row = np.nan_to_num(recording.signal[0, :n_shown], posinf=0.0, neginf=0.0)
    points = np.linspace(0, n_shown - 1, min(n_shown, _TRACE_POINTS)).round().astype(int)
    microvolts: Any = np.clip(row[points] * 1000, -1e7, 1e7).round().astype(int)
    return microvolts.tolist(), n_shown / recording.rate_hz


def _beginning(recording: Recording, n_bytes: int) -> Recording:
    """As much of the recording as `n_bytes` hold, all leads alike."""
    n_samples = max(1, n_bytes // (recording.signal.itemsize * len(recording.leads)))
    return recording if recording.n_samples <= n_samples else replace(recording, signal=recording.signal[:, :n_samples])
