"""The folder of a training run: where it may be started, and what it is started with."""

from pathlib import Path

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts import Cohort
from ecgquorum.errors import TrainingError
from ecgquorum.parallel import distributed
from ecgquorum.recipes import Recipe
from ecgquorum.training.job_runner import wait_until


def store_path(out: Path) -> str | Path:
    """Return the folder or URL of checkpoints that a run was started with; by default a folder of its own."""
    named = out / "store.txt"
    return named.read_text().strip() if named.is_file() else out / "members"


def check_out(out: Path, recipe: Recipe, cohort: Cohort, resume: bool) -> None:
    """Raise an error if a run cannot be started in a folder, or not be resumed there.

    recipe: with every default written out
    """
    if not out.exists() or (out.is_dir() and all(entry.suffix == ".partial" for entry in out.iterdir())):
        if resume:
            raise TrainingError(f"{out}: there is no run to resume; start one without --resume")
        return
    if not out.is_dir() or not (out / "recipe.toml").is_file():
        raise TrainingError(f"{out}: expected a new folder or a run to resume, found something else")
    if not resume:
        raise TrainingError(f"{out}: there is a run already; continue it with --resume, or choose another --out")
    if (out / "recipe.toml").read_text() != recipe.toml():
        raise TrainingError(f"{out}: the run was started with another recipe; choose another --out")
    started = out / "cohort.txt"
    if started.is_file() and started.read_text().strip() != cohort.data_hash:
        raise TrainingError(f"{out}: the run was started with another cohort; choose another --out")


def write_start(out: Path, recipe: Recipe, cohort: Cohort, store: str | Path | None) -> None:
    """Write what a run is started with; all processes return when they see it."""
    if distributed.is_first():
        write_atomic(out / "recipe.toml", recipe.toml())
        if store:
            write_atomic(out / "store.txt", f"{store}\n")
        write_atomic(out / "cohort.txt", cohort.data_hash + "\n")
    distributed.wait()
    wait_until(
        (out / "cohort.txt").is_file,
        f"{out}: rank {distributed.rank()} does not see the folder that the first rank writes; choose an --out on a "
        "file system that all machines share",
    )
