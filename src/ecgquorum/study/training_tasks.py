"""The training jobs of a study as tasks of an executor; a task starts when the jobs that it needs are in the store."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.bundle import CARD
from ecgquorum.parallel import Executor, Task
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import Recipe
from ecgquorum.recipes.study import run_folder
from ecgquorum.training import check_trainable, plan_jobs, train_ensemble, train_job
from ecgquorum.training.epoch_watch import EpochWatch
from ecgquorum.training.job_runner import wait_for_jobs, wait_until

Item = tuple[Recipe, str, str | None]
"""The recipe of a run, its name, and the identity of one of its jobs; None: its bundle, when all jobs are done."""


@dataclass(frozen=True)
class StudyFolders:
    """Where a study writes.

    out:          its folder · members: folder or URL of checkpoints
    bundles_here: only checkpoints are shared with other machines; bundles are made by the command
    """

    out: Path
    members: str
    bundles_here: bool = False


def train_distributed(
    recipes: Mapping[str, Recipe],
    cohort: Cohort,
    folders: StudyFolders,
    executor: Executor,
    device: str,
    progress: Progress,
) -> dict[str, Ensemble]:
    """Train the study's ensembles with the executor; the weights are those of training in this process."""
    tasks = [task for task in training_tasks(recipes, cohort) if task.item[2] or not folders.bundles_here]
    names = {identity: task.name for task in tasks if (identity := task.item[2])}
    cohort.verify()
    with (
        EpochWatch(folders.members, names, progress) as watch,
        closing(executor.run(_run_task, tasks, (cohort, folders, device))) as running,
    ):
        for done, (task, result) in enumerate(running, start=1):
            watch.look()
            progress.log(f"{task.name}: {result}")
            progress.update("training", done, len(tasks))
    ensembles = {}
    for name, recipe in recipes.items():
        run = run_path(folders.out, name)
        if not folders.bundles_here:
            wait_until((run / CARD).is_file, f"{run}: the trained ensemble did not appear; is the folder shared?")
        ensembles[name] = train_run(recipe, cohort, run, folders.members, device="cpu")  # which loads what is finished
    return ensembles


def training_tasks(recipes: Mapping[str, Recipe], cohort: Cohort) -> Iterator[Task]:
    """Yield every job once, also those that runs share, and after them the bundle of each run."""
    names: dict[str, str] = {}
    for run, recipe in recipes.items():
        jobs = plan_jobs(check_trainable(recipe, cohort), cohort.data_hash)
        for job in jobs:
            if job.identity not in names:
                names[job.identity] = f"{run}, {job.title}"
                after = frozenset(names[identity] for identity in job.needs)
                yield Task(names[job.identity], (recipe, run, job.identity), after)
        yield Task(f"{run}, ensemble", (recipe, run, None), frozenset(names[job.identity] for job in jobs))


def run_path(out: Path, name: str) -> Path:
    """Return the folder of a run's bundle."""
    return out / "runs" / run_folder(name)


def train_run(
    recipe: Recipe, cohort: Cohort, run: Path, store: str, *, device: str, progress: Progress = NO_PROGRESS
) -> Ensemble:
    """Train the ensemble of a run with the study's store; resume it if it was interrupted."""
    resume = (run / "recipe.toml").is_file()
    return train_ensemble(recipe, cohort, run, resume=resume, device=device, store=store, progress=progress)


def _run_task(cohort: Cohort, folders: StudyFolders, device: str, item: Item) -> str:
    """Run one task; return a line about its result."""
    recipe, name, identity = item
    if identity is None:
        wait_for_jobs(recipe, cohort, folders.members)
        run = run_path(folders.out, name)
        accuracy = train_run(recipe, cohort, run, folders.members, device=device).card["tune_accuracy"]
    else:
        accuracy = train_job(recipe, cohort, folders.members, identity, device=device)["tune_accuracy"]
    return f"done, tune accuracy {accuracy:.4f}"
