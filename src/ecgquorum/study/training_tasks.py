"""The training jobs of a study as tasks of an executor; a task starts when the jobs that it needs are in the store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.bundle import CARD
from ecgquorum.parallel import Executor, Task
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import Recipe, Study
from ecgquorum.training import check_trainable, plan_jobs, train_ensemble, train_job
from ecgquorum.training.epoch_watch import EpochWatch
from ecgquorum.training.job_runner import wait_for_jobs, wait_until

Item = tuple[Recipe, str | None]
"""A strategy's recipe and the identity of one of its jobs; None: its bundle, when all jobs are done."""


def train_distributed(
    study: Study, cohort: Cohort, out: Path, executor: Executor, device: str, progress: Progress
) -> list[Ensemble]:
    """Train the study's ensembles with the executor; the weights are those of training in this process."""
    out = out.resolve()
    tasks = list(training_tasks(study, cohort))
    names = {identity: task.name for task in tasks if (identity := task.item[1])}
    cohort.verify()
    with (
        EpochWatch(out / "members", names, progress) as watch,
        closing(executor.run(_run_task, tasks, (cohort, out, device))) as running,
    ):
        for done, (task, result) in enumerate(running, start=1):
            watch.look()
            progress.log(f"{task.name}: {result}")
            progress.update("training", done, len(tasks))
    runs = [run_path(out, strategy) for strategy in study.compare]
    for run in runs:
        wait_until((run / CARD).is_file, f"{run}: the trained ensemble did not appear; is the folder shared?")
    recipes = [study.recipe.with_strategy(strategy) for strategy in study.compare]
    return [train_strategy(recipe, cohort, out, device="cpu") for recipe in recipes]  # which loads what is finished


def training_tasks(study: Study, cohort: Cohort) -> Iterator[Task]:
    """Yield every job once, also those that strategies share, and after them the bundle of each strategy."""
    names: dict[str, str] = {}
    for strategy in study.compare:
        recipe = study.recipe.with_strategy(strategy)
        jobs = plan_jobs(check_trainable(recipe, cohort), cohort.data_hash)
        for job in jobs:
            if job.identity not in names:
                names[job.identity] = f"{strategy}, {job.title}"
                after = frozenset(names[identity] for identity in job.needs)
                yield Task(names[job.identity], (recipe, job.identity), after)
        yield Task(f"{strategy}, ensemble", (recipe, None), frozenset(names[job.identity] for job in jobs))


def run_path(out: Path, strategy: str) -> Path:
    """Return the folder of a strategy's bundle."""
    return out / "runs" / strategy


def train_strategy(
    recipe: Recipe, cohort: Cohort, out: Path, *, device: str, progress: Progress = NO_PROGRESS
) -> Ensemble:
    """Train a strategy's ensemble with the study's store; resume it if it was interrupted."""
    run = run_path(out, recipe.strategy)
    resume = (run / "recipe.toml").is_file()
    return train_ensemble(recipe, cohort, run, resume=resume, device=device, store=out / "members", progress=progress)


def _run_task(cohort: Cohort, out: Path, device: str, item: Item) -> str:
    """Run one task; return a line about its result."""
    recipe, identity = item
    if identity is None:
        wait_for_jobs(recipe, cohort, out / "members")
        accuracy = train_strategy(recipe, cohort, out, device=device).card["tune_accuracy"]
    else:
        accuracy = train_job(recipe, cohort, out / "members", identity, device=device)["tune_accuracy"]
    return f"done, tune accuracy {accuracy:.4f}"
