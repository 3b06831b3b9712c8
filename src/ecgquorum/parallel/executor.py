"""Run tasks with dependencies in other processes or on other machines.

A task writes its results itself, atomically, under names that depend on their content; running it twice does no harm.
So an executor may run a task again whenever its process or its machine was lost.
"""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from ecgquorum.errors import ClusterError
from ecgquorum.progress import NO_PROGRESS, Progress

RETRIES = 3
"""How often a task is run again after its process was lost; an error that the task itself raises ends everything."""

RETRIES_AFTER_MACHINES = 30
"""The same after its whole machine was lost, which is seldom the task's fault: spot machines are reclaimed."""


@dataclass(frozen=True)
class Task:
    """One call: its name, the function's last argument, and the names of tasks that must finish before it.

    A task comes after those that it depends on.
    """

    name: str
    item: Any
    after: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Lost:
    """The task's process is gone, for this reason."""

    reason: str
    with_machine: bool = False


@dataclass(frozen=True)
class Raised:
    """The task itself raised this error."""

    error: BaseException


Outcome = Any | Lost | Raised


class Executor(ABC):
    """Runs tasks somewhere; use as a context manager.

    threads:  CPU cores of each task; the same number of threads gives the same bits
    progress: its `log` gets one line for every lost task that is run again
    """

    threads: int
    progress: Progress = NO_PROGRESS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release processes and machines; running tasks are cancelled."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many tasks may run at the moment."""

    @abstractmethod
    def _prepare(self, function: Callable[..., Any], common: tuple[Any, ...]) -> Any:
        """Return what `_submit` needs; `common` is sent once to each process, not with every task."""

    @abstractmethod
    def _submit(self, prepared: Any, item: Any) -> Hashable:
        """Start `function(*common, item)` and return a handle."""

    @abstractmethod
    def _wait(self, handles: Iterable[Hashable]) -> list[tuple[Hashable, Outcome]]:
        """Wait until a task has finished and return all that have; an empty list after a while."""

    @abstractmethod
    def _cancel(self, handles: Iterable[Hashable]) -> None:
        """Stop running tasks."""

    def run(
        self,
        function: Callable[..., Any],
        tasks: Iterable[Task],
        common: tuple[Any, ...] = (),
        on_lost: Callable[[str], Any] | None = None,
    ) -> Generator[tuple[Task, Any], None, None]:
        """Yield each task with its result `function(*common, task.item)`, as they finish.

        Tasks are taken from `tasks` only when another one can start, so there may be any number of them, and later ones
        may depend on results so far. `function` is defined at the top of a module, and everything can be pickled.

        on_lost: makes the result of a task that was lost too often, given a line with the reason; None: raise an error
        """
        prepared = self._prepare(function, common)
        remaining, waiting = iter(tasks), deque[Task]()
        running: dict[Hashable, Task] = {}
        done: set[str] = set()
        losses = Counter[tuple[str, bool]]()
        try:
            while True:
                while len(running) < self.capacity and (task := _next_task(waiting, remaining, done)):
                    running[self._submit(prepared, task.item)] = task
                if not running:
                    if waiting:
                        raise ClusterError(f"{waiting[0].name}: depends on a task that is not in the list")
                    return
                for handle, outcome in self._wait(running):
                    task = running.pop(handle)
                    if isinstance(outcome, Raised):
                        raise outcome.error
                    if isinstance(outcome, Lost):
                        losses[task.name, outcome.with_machine] += 1
                        times = losses[task.name, outcome.with_machine]
                        if times <= (RETRIES_AFTER_MACHINES if outcome.with_machine else RETRIES):
                            waiting.appendleft(task)
                            self.progress.log(f"{task.name}: lost ({outcome.reason}); running it again")
                            continue
                        line = (
                            f"{task.name}: lost its {'machine' if outcome.with_machine else 'process'} {times} times "
                            f"({outcome.reason}); does it have enough memory?"
                        )
                        if on_lost is None:
                            raise ClusterError(line)
                        outcome = on_lost(line)
                    done.add(task.name)
                    yield task, outcome
        finally:
            self._cancel(running)


def _next_task(waiting: deque[Task], remaining: Iterator[Task], done: set[str]) -> Task | None:
    """The first task whose dependencies are done: of those that were waiting, else of those to come."""
    for task in waiting:
        if task.after <= done:
            waiting.remove(task)
            return task
    for task in remaining:
        if task.after <= done:
            return task
        waiting.append(task)
    return None
