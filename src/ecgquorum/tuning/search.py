"""A search's folder, which can be left and gone on with at any moment.

OUT/search.toml    the recipe and the options that it was begun with
OUT/search.sqlite  Optuna's book of trials
OUT/members/       the store of trainings that trials share
OUT/attacks/       crafted recordings, to be found again; may be deleted when the search is done
OUT/trials/NNN/    the bundle of each trial and its scorecard, on the tune part
OUT/trials.csv     every trial: parameters, measures, or why it failed
OUT/best.toml      the recipe of the chosen trial, with as many epochs as the given one has
OUT/search.html    the page
"""

import fcntl
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import tomli_w

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts import Cohort
from ecgquorum.errors import TuningError
from ecgquorum.evaluation import Told
from ecgquorum.parallel import Executor, Task
from ecgquorum.recipes import Recipe, Study
from ecgquorum.training import check_trainable
from ecgquorum.training.jobs import choose_device
from ecgquorum.training.loop import Observer
from ecgquorum.tuning.page import write_page
from ecgquorum.tuning.results import Trial, chosen_trial, pareto_front, trials_csv
from ecgquorum.tuning.space import Space, search_space
from ecgquorum.tuning.trial import Failure, Planned, Scores, TrialBench, protocol, run_trial

RECORDS = 200
TRIALS = 20


class Progress(Protocol):
    """Who draws how far a search is."""

    def observer(self, recipe: Recipe, stage: str) -> Observer:
        """For the training of one trial."""

    def told(self, stage: str) -> Told:
        """For its test."""

    def counted(self, what: str) -> Callable[[int, int], None]:
        """For trials that are made elsewhere."""


@dataclass(frozen=True)
class Search:
    """What a search has found.

    trials: all that have come to their end · front: those that no other beats · chosen: None where all failed
    """

    trials: tuple[Trial, ...]
    front: tuple[Trial, ...]
    chosen: Trial | None
    page: Path
    best: Path


def tune(
    study: Study,
    cohort: Cohort,
    out: str | Path,
    *,
    n_trials: int = TRIALS,
    strategy: str | None = None,
    epochs: int | None = None,
    vary: tuple[str, ...] | None = None,
    records: int = RECORDS,
    seed: int = 0,
    device: str = "auto",
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Search:
    """Search for recipes that answer more of the tune part rightly, as it is and under attack.

    The same call goes on where an earlier one was stopped, until there are `n_trials` in all; those that failed count.
    The test part is not looked at.

    strategy: what to search under; None: the recipe's
    epochs:   how long each member of a trial is trained; None: as long as the recipe says
    vary:     names of parameters, or of tables, to search over; None: all
    records:  attack at most so many recordings
    executor: makes several trials at a time; None: one after another in this process
    """
    from ecgquorum.tuning.trial_store import Ledger  # here, so that who makes trials elsewhere needs no Optuna

    if n_trials < 1 or records < 1:
        raise TuningError(f"expected at least one trial and one recording, found {n_trials} and {records}")
    out = Path(out)
    if executor is None or device != "cuda":
        choose_device(device)
    given = _shortened(study.recipe.with_strategy(strategy or study.strategy), epochs)
    space = search_space(given, cohort.rate_hz).chosen(vary)
    check_trainable(given, cohort)
    begun_with = {
        "cohort": cohort.data_hash,
        "seed": seed,
        "records": records,
        "vary": list(space.names),
        "recipe": tomllib.loads(_study_of(study, given).toml()),
    }
    with _alone(out, begun_with):
        place = out.resolve()  # for processes that are elsewhere
        folders = (place / "members", place / "attacks", place / "trials")
        bench = TrialBench(cohort, *folders, protocol(study, records), device)
        ledger = Ledger(out / "search.sqlite", space, seed)
        try:
            planned = (Planned(n, space.recipe_of(values)) for n, values in ledger.ask(n_trials))
            if executor is None:
                made = _made_here(bench, planned, n_trials, progress)
            else:
                made = _made_elsewhere(executor, bench, planned)
            count = progress.counted("trials") if progress and executor else None
            trials = ledger.trials()
            with closing(made):
                for number, outcome in made:
                    ledger.tell(number, outcome)
                    trials = ledger.trials()
                    _write_results(out, study, space, trials)
                    if count:
                        count(len(trials), n_trials)
            chosen = _write_results(out, study, space, trials)
            page = write_page(out / "search.html", trials, space, cohort, bench.evaluation, ledger.importances())
        finally:
            ledger.close()
    return Search(tuple(trials), tuple(pareto_front(trials)), chosen, page, out / "best.toml")


def _made_here(
    bench: TrialBench, planned: Iterator[Planned], n_trials: int, progress: Progress | None
) -> Generator[tuple[int, Scores | Failure], None, None]:
    for one in planned:
        stage = f"trial {one.number + 1}/{n_trials}"
        if progress is None:
            yield one.number, run_trial(bench, one)
        else:
            observer = progress.observer(one.recipe, stage)
            yield one.number, run_trial(bench, one, observer=observer, told=_lazily(progress, stage))


def _made_elsewhere(
    executor: Executor, bench: TrialBench, planned: Iterator[Planned]
) -> Generator[tuple[int, Scores | Failure], None, None]:
    tasks = (Task(f"trial {one.number:03d}", one) for one in planned)
    for task, outcome in executor.run(run_trial, tasks, (bench,), on_lost=Failure):
        yield task.item.number, outcome


def _lazily(progress: Progress, stage: str) -> Told:
    """The bar is about training until the test first tells something."""
    tells: list[Told] = []

    def told(what: str, done: int, total: int) -> None:
        if not tells:
            tells.append(progress.told(stage))
        tells[0](what, done, total)

    return told


def _write_results(out: Path, study: Study, space: Space, trials: list[Trial]) -> Trial | None:
    write_atomic(out / "trials.csv", trials_csv(trials, space))
    chosen = chosen_trial(trials)
    if chosen is not None:
        recipe = _shortened(space.recipe_of(chosen.values), study.training.epochs)
        write_atomic(out / "best.toml", _study_of(study, recipe).toml())
    return chosen


def _shortened(recipe: Recipe, epochs: int | None) -> Recipe:
    if epochs is None:
        return recipe
    return recipe.model_copy(update={"training": recipe.training.model_copy(update={"epochs": epochs})})


def _study_of(study: Study, recipe: Recipe) -> Study:
    """The same study of another recipe."""
    return Study.model_validate(study.model_dump() | recipe.model_dump())


@contextmanager
def _alone(out: Path, begun_with: dict[str, Any]) -> Iterator[None]:
    """Hold the folder for this process; refuse one that is held, or that another search was begun in."""
    if out.exists() and not out.is_dir():
        raise TuningError(f"{out}: expected a folder, found a file")
    described = out / "search.toml"
    if not described.is_file() and out.is_dir() and any(e.suffix not in (".partial", ".lock") for e in out.iterdir()):
        raise TuningError(f"{out}: expected a new folder or a search to go on with, found something else")
    out.mkdir(parents=True, exist_ok=True)
    with (out / "search.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise TuningError(f"{out}: a search is under way there; wait for it, or choose another --out") from error
        if described.is_file():
            _check_same(out, _read(described), begun_with)
        else:
            write_atomic(described, tomli_w.dumps(begun_with))
        yield


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TuningError(f"{path}: expected what a search was begun with, found it damaged ({error})") from error


def _check_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for key, value in tomllib.loads(tomli_w.dumps(now)).items():
        if before.get(key) != value:
            what = "recipe, strategy or number of epochs" if key == "recipe" else key
            raise TuningError(
                f"{out}: expected the {what} that the search was begun with, found another; choose another --out"
            )
