"""Search for a better recipe in a folder; the same call continues an interrupted search.

OUT/search.toml    the recipe and the options that it was started with
OUT/search.sqlite  Optuna's database of trials
OUT/members/       checkpoints that trials share
OUT/attacks/       cache of attacked recordings; may be deleted when the search is done
OUT/trials/NNN/    the bundle of each trial and its scorecard, on the tune part
OUT/trials.csv     every trial: parameters, metrics, or why it failed
OUT/best.toml      the recipe of the chosen trial, with as many epochs as the given one has
OUT/search.html    the page
"""

import fcntl
import tomllib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts import Cohort
from ecgquorum.errors import TuningError
from ecgquorum.parallel import Executor, Task
from ecgquorum.progress import NO_PROGRESS, Progress, StageProgress
from ecgquorum.recipes import Recipe, Study
from ecgquorum.training import check_trainable, choose_device
from ecgquorum.tuning.page import write_page
from ecgquorum.tuning.results import Trial, choose_trial, pareto_front, trials_csv
from ecgquorum.tuning.space import Space, search_space
from ecgquorum.tuning.trial import Failure, PlannedTrial, Scores, TrialSetup, evaluation_of_trials, run_trial

RECORDS = 200
TRIALS = 20


@dataclass(frozen=True)
class Search:
    """The result of a search.

    trials: all that have ended · front: those that no other beats · chosen: None where all failed
    """

    trials: tuple[Trial, ...]
    front: tuple[Trial, ...]
    chosen: Trial | None
    page: Path
    best: Path


@dataclass(frozen=True)
class TuningOptions:
    """Options of a search.

    n_trials: in all, also those of earlier calls and those that failed
    strategy: that all trials use; None: the recipe's
    epochs:   of each member of a trial; None: the recipe's
    vary:     names of parameters, tables or strategies to search over; None: all parameters
    records:  number of recordings to attack
    """

    n_trials: int = TRIALS
    strategy: str | None = None
    epochs: int | None = None
    vary: tuple[str, ...] | None = None
    records: int = RECORDS
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.n_trials < 1 or self.records < 1:
            raise TuningError(
                f"expected at least one trial and one recording, found {self.n_trials} and {self.records}"
            )


def tune(
    study: Study,
    cohort: Cohort,
    out: str | Path,
    *,
    options: TuningOptions = TuningOptions(),  # noqa: B008 (frozen)
    executor: Executor | None = None,
    progress: Progress = NO_PROGRESS,
) -> Search:
    """Search for recipes with higher accuracy on the tune part, natural and under attack.

    The same call continues an interrupted search. The test part is not used.

    executor: runs several trials at a time; None: one after another in this process
    """
    from ecgquorum.tuning.trial_store import TrialStore  # here, so that processes that run trials need no Optuna

    out = Path(out)
    if executor is None or options.device != "cuda":
        choose_device(options.device)
    recipe = _with_epochs(study.recipe.with_strategy(options.strategy or study.strategy), options.epochs)
    given = check_trainable(recipe, cohort).recipe
    space = search_space(given, cohort.rate_hz).restrict(options.vary)
    started_with = {
        "cohort": cohort.data_hash,
        "seed": options.seed,
        "records": options.records,
        "vary": list(space.names),
        "recipe": tomllib.loads(_with_recipe(study, given).toml()),
    }
    with _lock_folder(out, started_with):
        folder = out.resolve()  # for other processes
        folders = (folder / "members", folder / "attacks", folder / "trials")
        setup = TrialSetup(cohort, *folders, evaluation_of_trials(study, options.records), options.device)
        store = TrialStore(out / "search.sqlite", space, options.seed)
        try:
            planned = (PlannedTrial(n, space.recipe_of(values)) for n, values in store.ask(options.n_trials))
            outcomes = _run_trials(setup, planned, options.n_trials, executor, progress)
            with closing(outcomes):
                for number, outcome in outcomes:
                    store.tell(number, outcome)
                    _write_results(out, study, space, store.trials())
                    if executor:
                        progress.update("trials", len(store.trials()), options.n_trials)
            trials = store.trials()
            chosen = _write_results(out, study, space, trials)
            page = write_page(out / "search.html", trials, space, cohort, setup.evaluation, store.importances())
        finally:
            store.close()
    return Search(tuple(trials), tuple(pareto_front(trials)), chosen, page, out / "best.toml")


def _run_trials(
    setup: TrialSetup,
    planned: Iterator[PlannedTrial],
    n_trials: int,
    executor: Executor | None,
    progress: Progress,
) -> Generator[tuple[int, Scores | Failure], None, None]:
    if executor is None:
        for trial in planned:
            stage = StageProgress(progress, f"trial {trial.number + 1}/{n_trials}")
            yield trial.number, run_trial(setup, trial, stage)
        return
    tasks = (Task(f"trial {trial.number:03d}", trial) for trial in planned)
    for task, outcome in executor.run(run_trial, tasks, (setup,), on_lost=Failure):
        yield task.item.number, outcome


def _write_results(out: Path, study: Study, space: Space, trials: list[Trial]) -> Trial | None:
    write_atomic(out / "trials.csv", trials_csv(trials, space))
    chosen = choose_trial(trials)
    if chosen is not None:
        recipe = _with_epochs(space.recipe_of(chosen.values), study.training.epochs)
        write_atomic(out / "best.toml", _with_recipe(study, recipe).toml())
    return chosen


def _with_epochs(recipe: Recipe, epochs: int | None) -> Recipe:
    if epochs is None:
        return recipe
    return recipe.model_copy(update={"training": recipe.training.model_copy(update={"epochs": epochs})})


def _with_recipe(study: Study, recipe: Recipe) -> Study:
    """Return the same study of another recipe."""
    return Study.model_validate(study.model_dump() | recipe.model_dump())


@contextmanager
def _lock_folder(out: Path, started_with: dict[str, Any]) -> Iterator[None]:
    """Lock the folder for this process; raise an error if it is locked, or if another search was started in it."""
    if out.exists() and not out.is_dir():
        raise TuningError(f"{out}: expected a folder, found a file")
    started = out / "search.toml"
    if not started.is_file() and out.is_dir() and any(e.suffix not in (".partial", ".lock") for e in out.iterdir()):
        raise TuningError(f"{out}: expected a new folder or a search to continue, found something else")
    out.mkdir(parents=True, exist_ok=True)
    with (out / "search.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise TuningError(
                f"{out}: another process runs a search there; wait for it, or choose another --out"
            ) from error
        if started.is_file():
            _check_same(out, _read(started), started_with)
        else:
            write_atomic(started, tomli_w.dumps(started_with))
        yield


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TuningError(f"{path}: the file is damaged ({error}); choose another --out") from error


def _check_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for key, value in tomllib.loads(tomli_w.dumps(now)).items():
        if before.get(key) != value:
            what = "recipe, strategy or number of epochs" if key == "recipe" else key
            raise TuningError(f"{out}: the search was started with another {what}; choose another --out")
