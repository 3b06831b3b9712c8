"""One spawned process that does one task after another; a task that crashes, hangs or raises costs only itself.

Tasks go through a pipe that only the two processes can reach. What many tasks have in common is pickled once and sent
to each process once.
"""

import copy
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from typing import Any

from ecgquorum.parallel.executor import Lost, Outcome, Raised
from ecgquorum.parallel.process_guard import die_with_parent

START_LIMIT_S = 300.0
"""How long a process may take to start; not counted against the time limit of its first task."""

CONTEXT: SpawnContext | ForkServerContext = multiprocessing.get_context("spawn")
"""How processes start; the tests fork most of theirs from a server that has imported what they need."""

_MOST_EXTENSION = 10
_RUNNABLE = "R"


class _Ready:
    """The first message of a process: it has started and waits for tasks."""


@dataclass(frozen=True, eq=False)
class Work:
    """A function and the arguments that all its tasks share, pickled once."""

    pickled: bytes

    @classmethod
    def prepare(cls, function: Callable[..., Any], common: tuple[Any, ...] = ()) -> "Work":
        """Pickle `function` (of a module, not a closure) and its common arguments."""
        return cls(pickle.dumps((function, common)))


class WorkerProcess:
    """A process that runs `function(*common, item)` for one item at a time.

    setup:               called first in the new process, with `arguments`; both must be picklable
    time_limit_s:        for each task, from the moment the process has received it; see `extend_deadline`
    may_start_processes: its tasks may start processes of their own; it must then be stopped before this process ends
    """

    def __init__(
        self,
        setup: Callable[..., None],
        *arguments: Any,
        time_limit_s: float = inf,
        may_start_processes: bool = False,
    ) -> None:
        self.connection, theirs = CONTEXT.Pipe()
        daemon = not may_start_processes
        self._process = CONTEXT.Process(target=_serve, args=(theirs, setup, arguments), daemon=daemon)
        with _ignore_interrupts(), _hide_command_line():
            self._process.start()
        theirs.close()
        self._time_limit_s = time_limit_s
        self._is_ready = False
        self._known: Work | None = None
        self._task: tuple[Work, bytes] | None = None
        self._begun, self._used_before_s = time.monotonic(), 0.0
        self.deadline = self._begun + START_LIMIT_S

    @property
    def pid(self) -> int:
        """Process id."""
        return int(self._process.pid or 0)

    def begin(self, work: Work, item: Any) -> bool:
        """Start a task; False if the process is dead."""
        self._task = (work, pickle.dumps(item))
        return self._process.is_alive() and (not self._is_ready or self._send_task())

    def _send_task(self) -> bool:
        if self._task is not None:
            work, item = self._task
            try:
                self.connection.send(self._known is not work)
                if self._known is not work:
                    self.connection.send_bytes(work.pickled)
                    self._known = work
                self.connection.send_bytes(item)
            except OSError:
                return False
            self._begun, self._used_before_s = time.monotonic(), processor_time(self.pid)[1]
            self.deadline = self._begun + self._time_limit_s
        return True

    def extend_deadline(self) -> bool:
        """Give the task the time for which it waited for a processor; False if it used its time, or waits for nothing.

        A busy machine must not make a sound task fail. A task gets at most ten times its limit (Linux only).
        """
        state, used_s = processor_time(self.pid)
        left_s = self._time_limit_s - (used_s - self._used_before_s)
        latest = self._begun + _MOST_EXTENSION * self._time_limit_s
        if state != _RUNNABLE or left_s <= 0 or time.monotonic() >= latest:
            return False
        self.deadline = min(latest, time.monotonic() + max(left_s, 0.1))
        return True

    def receive(self) -> list[Outcome]:
        """Return the outcome of its task, once its connection is ready; empty if the process has only started."""
        try:
            message = self.connection.recv()
            if not isinstance(message, _Ready):
                return [message]
            self._is_ready = True
            if self._send_task():
                return []
        except (EOFError, OSError):
            pass
        self._process.join()
        return [Lost(describe_exit(self._process.exitcode))]

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self.connection.close()


def processor_time(pid: int) -> tuple[str, float]:
    """State of a process, R if it runs or could run, and its seconds on processors; empty and 0 where unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return "", 0.0


def describe_exit(code: int | None) -> str:
    """`signal 11` for a process that a signal ended, else `exit code 3`."""
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Start a process that ignores Ctrl-C from its first moment: a terminal sends it to the parent as well."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _hide_command_line() -> Iterator[None]:
    """Start a process that does not import the command line, as it would import any program that starts processes.

    A program of the user's is imported: its functions may be tasks.
    """
    program = sys.modules["__main__"]
    spec, path = program.__spec__, getattr(program, "__file__", None)
    ours = spec.name == "ecgquorum.__main__" if spec else Path(path or "").stem == "ecgquorum"
    if ours:
        program.__spec__, program.__file__ = None, None
    try:
        yield
    finally:
        if ours:
            program.__spec__, program.__file__ = spec, path


def _serve(connection: Connection, setup: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Do tasks until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    setup(*arguments)
    with suppress(EOFError, OSError):
        connection.send(_Ready())
        work: Any = None
        while True:
            if connection.recv():
                work = _receive_pickled(connection)
            item = _receive_pickled(connection)
            connection.send_bytes(_pickle_outcome(_run(work, item)))


def _receive_pickled(connection: Connection) -> Any:
    """What was sent; `Raised` if it cannot be unpickled here, which is an error of the task and not of the pipe."""
    try:
        return connection.recv()
    except Exception as error:
        return Raised(error)


def _run(work: Any, item: Any) -> Outcome:
    for received in (work, item):
        if isinstance(received, Raised):
            return received
    function, common = work
    try:
        return function(*common, item)
    except BaseException as error:
        error.add_note(traceback.format_exc())
        return Raised(error)


def _pickle_outcome(outcome: Outcome) -> bytes:
    try:
        if isinstance(outcome, Raised):
            copy.copy(outcome.error)  # rebuilt from its arguments, as unpickling does: not every error can be
        return pickle.dumps(outcome)
    except Exception as error:
        what = outcome.error if isinstance(outcome, Raised) else type(outcome)
        return pickle.dumps(Raised(TypeError(f"{what!r} cannot be sent back: {error}")))
