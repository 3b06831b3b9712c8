"""Tasks in processes of this machine.

They go through a pipe of `multiprocessing` that only this process and the one that it has started can reach; what is
common to many tasks is pickled once and sent to each process once.
"""

import copy
import multiprocessing
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ecgquorum.parallel.executor import Executor, Lost, Outcome, Raised
from ecgquorum.parallel.process_guard import die_with_parent


class _Ready:
    """What a process says first: that it has begun, and listens."""


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A function and what all its tasks have in common, pickled once."""

    pickled: bytes


class _Worker:
    """One process, which does one task after another."""

    def __init__(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, threads))
        with _without_interrupts():
            self._process.start()
        theirs.close()
        self._is_ready = False
        self._knows: _Prepared | None = None
        self._task: tuple[_Prepared, bytes] | None = None

    def begin(self, prepared: _Prepared, pickled_item: bytes) -> bool:
        """Have it do a task, as soon as it has begun to listen; False if it is dead."""
        self._task = (prepared, pickled_item)
        return not self._is_ready or self._given()

    def _given(self) -> bool:
        if self._task is not None:
            prepared, pickled_item = self._task
            try:
                self.connection.send(self._knows is not prepared)
                if self._knows is not prepared:
                    self.connection.send_bytes(prepared.pickled)
                    self._knows = prepared
                self.connection.send_bytes(pickled_item)
            except OSError:
                return False
        return True

    def outcomes(self) -> list[Outcome]:
        """What became of its task; nothing if it has only begun."""
        try:
            said = self.connection.recv()
            if not isinstance(said, _Ready):
                return [said]
            self._is_ready = True
            if self._given():
                return []
        except (EOFError, OSError):
            pass
        self._process.join()
        return [Lost(f"the process ended with exit code {self._process.exitcode}")]

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self.connection.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process that begins here ignores Ctrl-C from its first moment, which is for the one who gives the work."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class LocalExecutor(Executor):
    """So many processes of this machine, started when they are needed and kept until the end."""

    def __init__(self, workers: int, threads: int) -> None:
        self._workers, self.threads = workers, threads
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []

    @property
    def room(self) -> int:
        """One task a process."""
        return self._workers

    def close(self) -> None:
        """End the processes."""
        for worker in [*self._idle, *self._busy]:
            worker.stop()
        self._idle, self._busy = [], []

    def _prepared(self, function: Callable[..., Any], common: tuple[Any, ...]) -> _Prepared:
        return _Prepared(pickle.dumps((function, common)))

    def _begun(self, prepared: _Prepared, item: Any) -> _Worker:
        pickled = pickle.dumps(item)
        while self._idle:
            worker = self._idle.pop()
            if worker.begin(prepared, pickled):
                self._busy.append(worker)
                return worker
            worker.stop()  # it died while it had nothing to do
        worker = _Worker(self.threads)
        worker.begin(prepared, pickled)  # one that dies at its start is found to be lost
        self._busy.append(worker)
        return worker

    def _finished(self, handles: Iterable[Hashable]) -> list[tuple[Hashable, Outcome]]:
        workers = {worker.connection: worker for worker in handles if isinstance(worker, _Worker)}
        found: list[tuple[Hashable, Outcome]] = []
        for connection in wait(list(workers)):
            worker = workers[connection]  # type: ignore[index]
            for outcome in worker.outcomes():
                self._busy.remove(worker)
                if isinstance(outcome, Lost):
                    worker.stop()
                else:
                    self._idle.append(worker)
                found.append((worker, outcome))
        return found

    def _given_up(self, handles: Iterable[Hashable]) -> None:
        for worker in handles:
            if worker in self._busy:
                self._busy.remove(worker)
                worker.stop()


def _serve(connection: Connection, threads: int) -> None:
    """Do what comes, until the other end is gone."""
    die_with_parent()
    import torch

    torch.set_num_threads(threads)
    with suppress(EOFError, OSError):
        connection.send(_Ready())
        work: Any = None
        while True:
            if connection.recv():
                work = _received(connection)
            item = _received(connection)
            connection.send_bytes(_pickled(_outcome(work, item)))


def _received(connection: Connection) -> Any:
    """What was sent; `Raised` where it cannot be unpacked here, which is the task's error and not the pipe's."""
    try:
        return connection.recv()
    except Exception as error:
        return Raised(error)


def _outcome(work: Any, item: Any) -> Outcome:
    for sent in (work, item):
        if isinstance(sent, Raised):
            return sent
    function, common = work
    try:
        return function(*common, item)
    except BaseException as error:
        error.add_note(traceback.format_exc())
        return Raised(error)


def _pickled(outcome: Outcome) -> bytes:
    try:
        if isinstance(outcome, Raised):
            copy.copy(outcome.error)  # made anew from its arguments, as there: not every error can be
        return pickle.dumps(outcome)
    except Exception as error:
        what = outcome.error if isinstance(outcome, Raised) else type(outcome)
        return pickle.dumps(Raised(TypeError(f"{what!r} cannot be sent back: {error}")))
