"""One progress bar for a whole training run."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ecgquorum.recipe import Recipe


class ProgressBar:
    """An observer that draws: member, epoch, loss, accuracy on the tune part, time left."""

    def __init__(self, progress: Progress, task: TaskID, recipe: Recipe) -> None:
        self._progress, self._task, self._recipe = progress, task, recipe
        self._tuned = ""

    def on_batch(self, member: int, epoch: int, batch: int, n_batches: int, loss: float) -> None:
        """Move the bar."""
        epochs, members = self._recipe.training.epochs, self._recipe.members
        done = (member * epochs + epoch - 1) * n_batches + batch
        text = f"member {member + 1}/{members}  epoch {epoch}/{epochs}  loss {loss:.3f}{self._tuned}"
        self._progress.update(self._task, completed=done, total=members * epochs * n_batches, description=text)

    def on_epoch(self, member: int, row: dict[str, float]) -> None:
        """Print a line that stays."""
        self._tuned = f"  tune {row['tune_accuracy']:.3f}"
        self._progress.console.print(
            f"member {member + 1}  epoch {int(row['epoch']):3d}  loss {row['loss']:.4f}  "
            f"tune loss {row['tune_loss']:.4f}  tune accuracy {row['tune_accuracy']:.4f}  {row['seconds']:.1f} s",
            highlight=False,
        )


@contextmanager
def training_progress(recipe: Recipe, console: Console | None = None) -> Iterator[ProgressBar]:
    """Draw a bar for as long as the block runs."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True), transient=True) as progress:
        yield ProgressBar(progress, progress.add_task("training", total=None), recipe)
