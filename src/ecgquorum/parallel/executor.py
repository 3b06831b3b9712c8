"""Work that is done elsewhere: tasks, what each of them waits for, and who does them.

What a task leaves behind it writes itself, whole or not at all, under a name that says what it is; doing it twice does
no harm. So an executor may begin a task again wherever its process or its machine was lost.
"""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from ecgquorum.errors import ClusterError

RETRIES = 3
"""How often a task is begun again whose process was lost; an error that the task itself raises ends everything."""

RETRIES_AFTER_MACHINES = 30
"""The same where its whole machine was lost, which is seldom the task's fault: machines are lent, and called back."""


@dataclass(frozen=True)
class Task:
    """One piece of work: what it is called, what the function is given, and the names of tasks to be done before it.

    A task comes after all those that it waits for.
    """

    name: str
    item: Any
    after: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Lost:
    """A task's process is gone; `why` says what is known of it."""

    why: str
    with_machine: bool = False


@dataclass(frozen=True)
class Raised:
    """The task itself raised this."""

    error: BaseException


Outcome = Any | Lost | Raised


class Executor(ABC):
    """Does tasks somewhere; use as a context.

    threads: how many CPU cores each task gets; numbers are the same to the bit for the same number of threads
    told:    is told in a line what was lost and is begun again
    """

    threads: int
    told: Callable[[str], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of processes and machines; what is under way is given up."""

    @property
    @abstractmethod
    def room(self) -> int:
        """How many tasks may be under way now."""

    @abstractmethod
    def _prepared(self, function: Callable[..., Any], common: tuple[Any, ...]) -> Any:
        """Whatever begins tasks quickly: `common` is sent once to where it is needed, not with every task."""

    @abstractmethod
    def _begun(self, prepared: Any, item: Any) -> Hashable:
        """Begin `function(*common, item)`; gives a handle."""

    @abstractmethod
    def _finished(self, handles: Iterable[Hashable]) -> list[tuple[Hashable, Outcome]]:
        """Wait until something of it is finished, and give that; or give nothing after a while."""

    @abstractmethod
    def _given_up(self, handles: Iterable[Hashable]) -> None:
        """Stop what is under way."""

    def run(
        self,
        function: Callable[..., Any],
        tasks: Iterable[Task],
        common: tuple[Any, ...] = (),
        given_up: Callable[[str], Any] | None = None,
    ) -> Generator[tuple[Task, Any], None, None]:
        """`function(*common, task.item)` of every task, each with its result, as they are finished.

        Tasks are taken from `tasks` only when there is room for one more, so there may be any number of them, and what
        a later one is may depend on the results so far. `function` is a module's own, and everything can be pickled.

        given_up: makes, of a line that says why, the result of a task that was lost too often; None: that is an error
        """
        prepared = self._prepared(function, common)
        remaining, waiting = iter(tasks), deque[Task]()
        running: dict[Hashable, Task] = {}
        done: set[str] = set()
        lost = Counter[tuple[str, bool]]()
        try:
            while True:
                while len(running) < self.room and (task := _ready(waiting, remaining, done)):
                    running[self._begun(prepared, task.item)] = task
                if not running:
                    if waiting:
                        raise ClusterError(f"{waiting[0].name}: expected the tasks that it waits for, found none")
                    return
                for handle, outcome in self._finished(running):
                    task = running.pop(handle)
                    if isinstance(outcome, Raised):
                        raise outcome.error
                    if isinstance(outcome, Lost):
                        lost[task.name, outcome.with_machine] += 1
                        times = lost[task.name, outcome.with_machine]
                        if times <= (RETRIES_AFTER_MACHINES if outcome.with_machine else RETRIES):
                            waiting.appendleft(task)
                            if self.told:
                                self.told(f"{task.name}: lost ({outcome.why}); it is begun again")
                            continue
                        line = (
                            f"{task.name}: expected its {'machine' if outcome.with_machine else 'process'} to live, "
                            f"lost it {times} times ({outcome.why}); does it have enough memory?"
                        )
                        if given_up is None:
                            raise ClusterError(line)
                        outcome = given_up(line)
                    done.add(task.name)
                    yield task, outcome
        finally:
            self._given_up(running)


def _ready(waiting: deque[Task], remaining: Iterator[Task], done: set[str]) -> Task | None:
    """The first task that can begin: of those that were waiting, else of those to come."""
    for task in waiting:
        if task.after <= done:
            waiting.remove(task)
            return task
    for task in remaining:
        if task.after <= done:
            return task
        waiting.append(task)
    return None
