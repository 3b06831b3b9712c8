"""Run readers in worker processes with a time and a memory limit, so that no file can stop a batch.

A file that crashes its reader, takes too long or needs too much memory becomes a `ReadFailure`; the others are not
affected. Outcomes come in the order of the paths, and only a few files are read ahead.
"""

import importlib
import resource
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from ecgquorum.errors import EcgQuorumError
from ecgquorum.parallel.executor import Lost, Raised
from ecgquorum.parallel.worker_process import Work, WorkerProcess
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath
from ecgquorum.recordings.readers import READERS
from ecgquorum.recordings.recording import one_line

_AHEAD = 4
_STATM = Path("/proc/self/statm")

T = TypeVar("T")
ReadFunction = Callable[..., T]
"""`function(*common, path) -> T`, of a module, so that a worker process can import it."""


@dataclass(frozen=True)
class SandboxLimits:
    """How many worker processes read, and what one file may use.

    seconds:      without those for which the process waits for a processor; see `WorkerProcess.extend_deadline`
    memory_bytes: beyond what the process uses when it starts (Linux only)
    """

    n_workers: int = 2
    seconds: float = 20.0
    memory_bytes: int = 1 << 30


LIMITS = SandboxLimits()


class Sandbox(Generic[T]):
    """Worker processes that call one function for many recordings; use as a context.

    function: returns what was read, or raises; runs as `function(*common, path)` in the workers
    preload:  modules that workers import when they start, which counts within no limit
    """

    def __init__(
        self,
        function: ReadFunction[T],
        common: tuple[Any, ...] = (),
        limits: SandboxLimits = LIMITS,
        preload: tuple[str, ...] = (),
    ) -> None:
        self._limits = limits
        self._preload = preload
        self._work = Work.prepare(_call, (function, common))
        self._workers: list[WorkerProcess] = []

    def _start(self) -> WorkerProcess:
        arguments = (self._limits.memory_bytes, READERS.registered, self._preload)
        worker = WorkerProcess(_limit_process, *arguments, time_limit_s=self._limits.seconds)
        self._workers.append(worker)
        return worker

    def _stop(self, worker: WorkerProcess) -> None:
        worker.stop()
        self._workers.remove(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the workers."""
        for worker in self._workers:
            worker.stop()
        self._workers = []

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.pid for worker in self._workers]

    def run(self, paths: Iterable[RecordingPath]) -> Iterator[T | ReadFailure]:
        """Yield the outcome of every path, in order."""
        remaining = enumerate(paths)
        running: dict[WorkerProcess, tuple[int, RecordingPath]] = {}
        done: dict[int, T | ReadFailure] = {}
        idle, n_begun, n_yielded = deque(self._workers), 0, 0
        try:
            while True:
                while n_begun - n_yielded < _AHEAD * self._limits.n_workers and len(running) < self._limits.n_workers:
                    task = next(remaining, None)
                    if task is None:
                        break
                    worker = idle.popleft() if idle else self._start()
                    running[self._begin(worker, task[1])] = task
                    n_begun += 1
                if not running:
                    return
                for worker, outcome in self._wait(running):
                    done[running.pop(worker)[0]] = outcome
                    if worker in self._workers:
                        idle.append(worker)
                while n_yielded in done:
                    yield done.pop(n_yielded)
                    n_yielded += 1
        finally:  # the caller may stop early; what is still being read is of no use
            for worker in running:
                self._stop(worker)

    def _begin(self, worker: WorkerProcess, path: RecordingPath) -> WorkerProcess:
        if not worker.begin(self._work, path):  # it died while it was idle
            self._stop(worker)
            worker = self._start()
            worker.begin(self._work, path)
        return worker

    def _wait(
        self, running: Mapping[WorkerProcess, tuple[int, RecordingPath]]
    ) -> Iterator[tuple[WorkerProcess, T | ReadFailure]]:
        """Wait for the next outcomes or time limit; a worker that crashed or was too slow is stopped."""
        first = min(worker.deadline for worker in running)
        ready = wait([worker.connection for worker in running], max(0.0, first - time.monotonic()))
        for worker, (_, path) in list(running.items()):
            if worker.connection in ready:
                for outcome in worker.receive():
                    if isinstance(outcome, Lost):
                        self._stop(worker)
                        why = f"reader process crashed ({outcome.reason}); file skipped"
                        yield worker, ReadFailure(str(path), f"{path}: {why}")
                    else:
                        yield worker, _unwrap(outcome, path)
            elif time.monotonic() >= worker.deadline and not worker.extend_deadline():
                self._stop(worker)
                why = f"not read within {self._limits.seconds:g} s; file skipped"
                yield worker, ReadFailure(str(path), f"{path}: {why}")


def _unwrap(outcome: Any, path: RecordingPath) -> Any:
    """A worker's result; what could not be sent back is a failure of its file."""
    return describe_failure(outcome.error, path) if isinstance(outcome, Raised) else outcome


def describe_failure(error: BaseException, path: RecordingPath, sha256: str = "") -> ReadFailure:
    """Say in one line why a recording could not be read."""
    if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
        reason = f"{path}: needs more memory than a reader may use; file skipped"
    elif isinstance(error, EcgQuorumError):
        reason = str(error)
    else:
        reason = f"{path}: cannot be read: {one_line(error)}"
    return ReadFailure(str(path), reason, sha256)


def _call(function: ReadFunction[T], common: tuple[Any, ...], path: RecordingPath) -> T | ReadFailure:
    try:
        return function(*common, path)
    except Exception as error:  # whatever a parser raises must not stop the batch
        return describe_failure(error, path)


def _limit_process(memory_bytes: int, readers: Mapping[str, Any], preload: tuple[str, ...]) -> None:
    """Limit the memory of this worker, and register the readers that the parent has registered."""
    for module in preload:
        importlib.import_module(module)
    for name, reader in readers.items():
        if name not in READERS:
            READERS.register(name, reader)
    if _STATM.is_file():
        used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))
