"""One display for a whole study."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, TaskID

from ecgquorum.recipes import Recipe
from ecgquorum.training.progress import ProgressBar, training_columns

Told = Callable[[str, float, float], None]


class CallProgress:
    """A `Progress` that passes positions on to a function."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def update(self, text: str, done: float, total: float) -> None:
        """Pass the position on."""
        self._told(text, done, total)

    def log(self, line: str) -> None:
        """Ignore the line."""


class StudyProgress:
    """A bar that is first about recordings, then about one strategy after another, then about the test."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def observer(self, recipe: Recipe, stage: str) -> ProgressBar:
        """For the training of one strategy."""
        self._progress.reset(self._task, total=None, description=stage)
        return ProgressBar(self._progress, self._task, recipe, stage)

    def said(self, line: str) -> None:
        """A line that stays."""
        self._progress.console.print(line, highlight=False, markup=False)

    def finished(self, what: str, done: int, total: int) -> None:
        """For trainings that go on elsewhere: a line that stays for each, and the bar."""
        self.said(what)
        self._progress.update(self._task, completed=done, total=total, description="training")

    def told(self, stage: str) -> Told:
        """For the test."""
        self._progress.reset(self._task, total=None, description=stage)

        def told(what: str, done: float, total: float) -> None:
            self._progress.update(self._task, completed=done, total=total, description=f"{stage}  {what}")

        return told

    def counted(self, what: str) -> Callable[[int, int], None]:
        """For anything that is counted."""
        self._progress.reset(self._task, total=None, description=what)
        return lambda done, total: self._progress.update(self._task, completed=done, total=total)


@contextmanager
def study_progress(console: Console | None = None) -> Iterator[StudyProgress]:
    """Draw for as long as the block runs."""
    with Progress(*training_columns(), console=console or Console(stderr=True), transient=True) as progress:
        yield StudyProgress(progress, progress.add_task("study", total=None))
