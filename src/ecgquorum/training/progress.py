"""One progress bar for a whole training run."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ecgquorum.recipes import Recipe
from ecgquorum.training.loop import Row
from ecgquorum.training.strategy import Unit, plan_jobs, plan_phase


class ProgressBar:
    """An observer that draws: which training, epoch, loss, accuracy on the tune part, time left."""

    def __init__(self, progress: Progress, task: TaskID, recipe: Recipe, stage: str = "") -> None:
        self._progress, self._task = progress, task
        self._stage = f"{stage}  " if stage else ""
        units = plan_jobs(recipe, "")
        self._epochs = sum(plan_phase(recipe, unit.phase).epochs for unit in units)
        self._done = 0
        self._now = 0
        self._tuned = ""

    def on_unit(self, unit: Unit, epochs: int, found: bool) -> None:
        """Say what was found; what begins will be seen."""
        self._done += self._now
        self._now = epochs
        if found:
            said = f"{self._stage}{unit_name(unit)}: found in the store, not trained again"
            self._progress.console.print(said, highlight=False)

    def on_batch(self, unit: Unit, epoch: int, batch: int, n_batches: int, loss: float) -> None:
        """Move the bar."""
        done = (self._done + epoch - 1) * n_batches + batch
        text = f"{self._stage}{unit_name(unit)}  epoch {epoch}/{self._now}  loss {loss:.3f}{self._tuned}"
        self._progress.update(self._task, completed=done, total=self._epochs * n_batches, description=text)

    def on_epoch(self, unit: Unit, row: Row) -> None:
        """Print a line that stays."""
        self._tuned = f"  tune {row['tune_accuracy']:.3f}"
        self._progress.console.print(f"{self._stage}{unit_name(unit)}  {epoch_line(row)}", highlight=False)


def epoch_line(row: Row) -> str:
    """An epoch of the history when people read it."""
    return (
        f"epoch {row['epoch']:3d}  loss {row['loss']:.4f}  tune loss {row['tune_loss']:.4f}  "
        f"tune accuracy {row['tune_accuracy']:.4f}  {row['seconds']:.1f} s"
    )


def unit_name(unit: Unit) -> str:
    """What to call a training when people read it."""
    who = f"member {unit.members[0]}" if len(unit.members) == 1 else "all members"
    return who if unit.phase == "base" else f"{who} ({unit.phase})"


def training_columns() -> tuple[ProgressColumn, ...]:
    """What a line of progress says: what is done, how far it is, since when, for how long."""
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )


@contextmanager
def training_progress(recipe: Recipe, console: Console | None = None) -> Iterator[ProgressBar]:
    """Draw a bar for as long as the block runs."""
    with Progress(*training_columns(), console=console or Console(stderr=True), transient=True) as progress:
        yield ProgressBar(progress, progress.add_task("training", total=None), recipe)
