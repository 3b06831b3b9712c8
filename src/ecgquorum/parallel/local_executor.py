"""Run tasks in processes of this machine, by pebble's process pool.

All workers of a pool share one pipe, and one that is killed while it writes to the pipe blocks the others. So tasks and
results are files in a temporary folder of this user; the pipe carries only their names.
"""

import copy
import multiprocessing
import pickle
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from ecgquorum.parallel.executor import Executor, Lost, Outcome, Raised
from ecgquorum.parallel.process_guard import die_with_parent


class LocalExecutor(Executor):
    """A number of processes of this machine, started with the first task and kept until the end."""

    def __init__(self, workers: int, threads: int) -> None:
        self._workers, self.threads = workers, threads
        self._pool: ProcessPool | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="ecgquorum-", ignore_cleanup_errors=True)
        self._numbers = count()

    @property
    def capacity(self) -> int:
        """One task a process."""
        return self._workers

    def close(self) -> None:
        """End the processes and remove the folder."""
        self._stop_pool()
        self._folder.cleanup()

    def _stop_pool(self) -> None:
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
            self._pool = None

    def _write(self, content: Any) -> Path:
        pickled = pickle.dumps(content)
        path = Path(self._folder.name) / str(next(self._numbers))
        path.write_bytes(pickled)
        return path

    def _prepare(self, function: Callable[..., Any], common: tuple[Any, ...]) -> Path:
        return self._write((function, common))

    def _submit(self, prepared: Path, item: Any) -> Hashable:
        arguments = (prepared, self._write(item))
        if self._pool is not None and self._pool.active:
            return self._pool.schedule(_run_task, arguments)
        self._stop_pool()
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPool(self._workers, initializer=_initialise, initargs=(self.threads,), context=context)
        with _ignore_interrupts():  # of which the first task starts the processes
            return self._pool.schedule(_run_task, arguments)

    def _wait(self, handles: Iterable[Hashable]) -> list[tuple[Hashable, Outcome]]:
        futures = [handle for handle in handles if isinstance(handle, Future)]
        return [(future, _outcome(future)) for future in wait(futures, return_when=FIRST_COMPLETED).done]

    def _cancel(self, handles: Iterable[Hashable]) -> None:
        for handle in handles:
            if isinstance(handle, Future):
                handle.cancel()


def _outcome(future: Future[Path]) -> Outcome:
    try:
        path = future.result()
    except ProcessExpired as error:
        return Lost(f"the process ended with exit code {error.exitcode}")
    except BrokenProcessPool as error:  # processes died before they took a task
        return Lost(str(error) or "the processes did not start")
    outcome = pickle.loads(path.read_bytes())  # noqa: S301 (written by our own process, in this user's folder)
    path.unlink()
    return outcome


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Processes that start here ignore Ctrl-C from their first moment; it is for the one that gives the work."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _initialise(threads: int) -> None:
    die_with_parent()
    import torch

    torch.set_num_threads(threads)


_last_work: tuple[Path, Any] | None = None  # the function and the common arguments that this process has read last


def _run_task(prepared: Path, item_path: Path) -> Path:
    """Run one task in a worker; returns the file with its outcome."""
    global _last_work
    try:
        if _last_work is None or _last_work[0] != prepared:
            _last_work = (prepared, pickle.loads(prepared.read_bytes()))  # noqa: S301 (from the parent process)
        function, common = _last_work[1]
        outcome: Outcome = function(*common, pickle.loads(item_path.read_bytes()))  # noqa: S301
    except BaseException as error:
        error.add_note(traceback.format_exc())
        outcome = Raised(error)
    path = item_path.with_suffix(".result")
    path.write_bytes(_dump(outcome))
    item_path.unlink(missing_ok=True)
    return path


def _dump(outcome: Outcome) -> bytes:
    try:
        if isinstance(outcome, Raised):
            copy.copy(outcome.error)  # rebuilt from its arguments, as unpickling does: not every error can be
        return pickle.dumps(outcome)
    except Exception as error:
        what = outcome.error if isinstance(outcome, Raised) else type(outcome)
        return pickle.dumps(Raised(TypeError(f"{what!r} cannot be sent back: {error}")))
