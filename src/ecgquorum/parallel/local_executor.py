"""Run tasks in processes of this machine."""

from collections.abc import Callable, Hashable, Iterable
from multiprocessing.connection import wait
from typing import Any

from ecgquorum.parallel.executor import Executor, Lost, Outcome
from ecgquorum.parallel.worker_process import Work, WorkerProcess


class LocalExecutor(Executor):
    """A number of processes of this machine, started when they are needed and kept until the end."""

    def __init__(self, workers: int, threads: int) -> None:
        self._n_workers, self.threads = workers, threads
        self._idle: list[WorkerProcess] = []
        self._busy: list[WorkerProcess] = []

    @property
    def capacity(self) -> int:
        """One task per process."""
        return self._n_workers

    def close(self) -> None:
        """Kill the processes."""
        for worker in [*self._idle, *self._busy]:
            worker.stop()
        self._idle, self._busy = [], []

    def _prepare(self, function: Callable[..., Any], common: tuple[Any, ...]) -> Work:
        return Work.prepare(function, common)

    def _submit(self, prepared: Work, item: Any) -> WorkerProcess:
        while self._idle:
            worker = self._idle[-1]
            if worker.begin(prepared, item):
                self._busy.append(self._idle.pop())
                return worker
            self._idle.pop().stop()  # it died while it was idle
        worker = WorkerProcess(_set_threads, self.threads, may_start_processes=True)
        self._idle.append(worker)  # where it stays if the item cannot be pickled
        worker.begin(prepared, item)  # one that dies at its start is found to be lost
        self._busy.append(self._idle.pop())
        return worker

    def _wait(self, handles: Iterable[Hashable]) -> list[tuple[Hashable, Outcome]]:
        workers = {worker.connection: worker for worker in handles if isinstance(worker, WorkerProcess)}
        finished: list[tuple[Hashable, Outcome]] = []
        for connection in wait(list(workers)):
            worker = workers[connection]  # type: ignore[index]
            for outcome in worker.receive():
                self._busy.remove(worker)
                if isinstance(outcome, Lost):
                    worker.stop()
                else:
                    self._idle.append(worker)
                finished.append((worker, outcome))
        return finished

    def _cancel(self, handles: Iterable[Hashable]) -> None:
        for worker in handles:
            if worker in self._busy:
                self._busy.remove(worker)
                worker.stop()


def _set_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
