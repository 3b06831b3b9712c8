"""A study's trainings as tasks, each of which can begin as soon as what it needs is in the store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble, load_ensemble
from ecgquorum.ensemble.bundle import CARD
from ecgquorum.parallel import Executor, Task
from ecgquorum.recipes import Recipe, Study
from ecgquorum.study.progress import StudyProgress
from ecgquorum.training import plan_jobs, train_ensemble, train_job
from ecgquorum.training.epoch_watch import EpochWatch
from ecgquorum.training.jobs import wait_for_jobs, wait_until
from ecgquorum.training.progress import unit_name

Item = tuple[Recipe, str | None]
"""A strategy's recipe and one of its trainings; None: its bundle, when all of them are done."""


def train_distributed(
    study: Study, cohort: Cohort, out: Path, executor: Executor, device: str, progress: StudyProgress | None
) -> list[Ensemble]:
    """The study's ensembles, their members trained by the executor; the same bits as if they were trained here."""
    out = out.resolve()
    tasks = list(training_tasks(study, cohort))
    names = {identity: task.name for task in tasks if (identity := task.item[1])}
    cohort.verify()
    with (
        EpochWatch(out / "members", names, progress.said if progress else _unsaid) as watch,
        closing(executor.run(_trained, tasks, (cohort, out, device))) as running,
    ):
        for done, (task, told) in enumerate(running, start=1):
            watch.look()
            if progress:
                progress.finished(f"{task.name}: {told}", done, len(tasks))
    runs = [run_of(out, strategy) for strategy in study.strategies]
    for run in runs:
        wait_until((run / CARD).is_file, f"{run}: expected the ensemble, found none; is the folder shared?")
    return [load_ensemble(run) for run in runs]


def training_tasks(study: Study, cohort: Cohort) -> Iterator[Task]:
    """Every training once, whoever shares it, and then the bundle of each strategy."""
    names: dict[str, str] = {}
    for strategy in study.strategies:
        recipe = study.recipe.with_strategy(strategy)
        units = plan_jobs(recipe, cohort.data_hash)
        for unit in units:
            if unit.identity not in names:
                names[unit.identity] = f"{strategy}, {unit_name(unit)}"
                after = frozenset(names[identity] for identity in unit.needs)
                yield Task(names[unit.identity], (recipe, unit.identity), after)
        yield Task(f"{strategy}, ensemble", (recipe, None), frozenset(names[unit.identity] for unit in units))


def run_of(out: Path, strategy: str) -> Path:
    """Where a strategy's bundle is."""
    return out / "runs" / strategy


def train_strategy(recipe: Recipe, cohort: Cohort, out: Path, **how: object) -> Ensemble:
    """A strategy's ensemble, its trainings in the study's store; goes on where it stopped."""
    run = run_of(out, recipe.strategy)
    begun = (run / "recipe.toml").is_file()
    return train_ensemble(recipe, cohort, run, resume=begun, store=out / "members", **how)  # type: ignore[arg-type]


def _unsaid(line: str) -> None:
    """To nobody."""


def _trained(cohort: Cohort, out: Path, device: str, item: Item) -> str:
    """One task; gives what to say of it."""
    recipe, identity = item
    if identity is None:
        wait_for_jobs(recipe, cohort, out / "members")
        accuracy = train_strategy(recipe, cohort, out, device=device).card["tune_accuracy"]
    else:
        accuracy = train_job(recipe, cohort, out / "members", identity, device=device)["tune_accuracy"]
    return f"done, tune accuracy {accuracy:.4f}"
