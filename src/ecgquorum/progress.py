"""The one protocol by which long jobs report how far they are, and the console's progress bar."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress


class Progress(Protocol):
    """What a long job calls; every long job takes `progress: Progress = NO_PROGRESS`."""

    def update(self, text: str, done: float, total: float) -> None:
        """Report that `done` of `total` is finished and that `text` is being worked on."""

    def log(self, line: str) -> None:
        """Report one event as a line that stays on the screen."""


class _NoProgress:
    def update(self, text: str, done: float, total: float) -> None:
        pass

    def log(self, line: str) -> None:
        pass


NO_PROGRESS: Progress = _NoProgress()
"""Ignores every report."""


class StageProgress:
    """Passes reports on to another progress, each text and line prefixed with the name of a stage."""

    def __init__(self, progress: Progress, stage: str) -> None:
        self._progress, self._stage = progress, stage

    def update(self, text: str, done: float, total: float) -> None:
        """Pass the position on."""
        self._progress.update(f"{self._stage}  {text}", done, total)

    def log(self, line: str) -> None:
        """Pass the line on."""
        self._progress.log(f"{self._stage}  {line}")


class _ConsoleBar:
    def __init__(self, bar: "RichProgress", title: str) -> None:
        self._bar, self._task = bar, bar.add_task(title, total=None)
        self._done, self._total = 0.0, -1.0

    def update(self, text: str, done: float, total: float) -> None:
        if done < self._done or total != self._total:  # a new stage: its speed says nothing about the last one's
            self._bar.reset(self._task, total=total)
        self._done, self._total = done, total
        self._bar.update(self._task, completed=done, total=total, description=text)

    def log(self, line: str) -> None:
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def console_progress(title: str, console: "Console | None" = None) -> Iterator[Progress]:
    """Draw one progress bar on `console` (standard error by default) while the block runs; lines stay above it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True), transient=True) as bar:
        yield _ConsoleBar(bar, title)
