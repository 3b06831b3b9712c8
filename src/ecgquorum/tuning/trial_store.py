"""The database of a search: one SQLite file of Optuna, which only the process that runs the search opens.

A trial keeps its number when it is started again after an interruption; Optuna counts that as another trial. The
parameters of a trial depend on the seed, its number and the trials that ended before it was asked for, and on nothing
that an interruption would lose.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ecgquorum._internal.atomic import check_disk_full
from ecgquorum._internal.seeds import derive_seed
from ecgquorum.errors import TuningError
from ecgquorum.metrics import Estimate
from ecgquorum.tuning.results import Trial
from ecgquorum.tuning.space import Parameter, Range, Space, Value, Values
from ecgquorum.tuning.trial import ATTACKED, NATURAL, Failure, Scores

try:
    import optuna
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
    from optuna.samplers import TPESampler
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy import URL
    from sqlalchemy.exc import DatabaseError
except ImportError as error:
    raise TuningError(f'the search needs {error.name}; install it with: pip install "ecgquorum[tune]"') from error

_STUDY = "search"
_TOP = 0.25
FEWEST_FOR_IMPORTANCE = 20


class TrialStore:
    """The trials of a search; a new store starts with the given recipe as trial 0."""

    def __init__(self, path: Path, space: Space, seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._seed = space, seed
        self._running: dict[int, optuna.Trial] = {}
        try:
            if not path.is_file():
                _create(path, space)
            self._storage = _open(path)
            self._study = optuna.load_study(study_name=_STUDY, storage=self._storage)
            self._requeue()
        except (DatabaseError, KeyError, RuntimeError) as error:
            check_disk_full(path, error)
            raise TuningError(
                f"{path}: the database of the search is damaged ({str(error).partition(chr(10))[0]}); "
                "choose another --out"
            ) from error

    def close(self) -> None:
        """Close the file."""
        _close(self._storage)

    def ask(self, n_trials: int) -> Iterator[tuple[int, Values]]:
        """Yield number and parameters of one trial after another until there are `n_trials`."""
        while True:
            known = [trial for trial in self._frozen() if "trial" in trial.user_attrs]
            numbers = {trial.user_attrs["trial"] for trial in known}
            waiting = {trial.user_attrs["trial"] for trial in known if trial.state == TrialState.WAITING}
            if len(numbers - waiting) >= n_trials:
                return
            yield self._ask_next(len(numbers))

    def tell(self, number: int, outcome: Scores | Failure) -> None:
        """Store the outcome of a trial."""
        trial = self._running.pop(number)
        if isinstance(outcome, Failure):
            trial.set_user_attr("reason", outcome.reason)
            self._study.tell(trial, state=TrialState.FAIL)
        else:
            measures = {name: [found.value, found.low, found.high] for name, found in outcome.measures.items()}
            trial.set_user_attr("measures", measures)
            self._study.tell(trial, [outcome.measures[NATURAL].value, outcome.measures[ATTACKED].value])

    def trials(self) -> list[Trial]:
        """Return all trials that have ended, by number."""
        found = {}
        for trial in self._frozen():
            known: dict[str, Any] = trial.user_attrs
            if trial.state == TrialState.COMPLETE:
                measures = {name: Estimate(*three) for name, three in known["measures"].items()}
                found[known["trial"]] = Trial(known["trial"], trial.params, measures)
            elif trial.state == TrialState.FAIL and "reason" in known:  # without: it was interrupted and started again
                found[known["trial"]] = Trial(known["trial"], trial.params, {}, known["reason"])
        return [found[number] for number in sorted(found)]

    def importances(self) -> dict[str, float]:
        """Return how well each parameter that all trials have separates the best quarter; empty for few trials.

        PED-ANOVA, which needs no other package. Parameters that only some trials have are left out.
        """
        if len(self._study.get_trials(states=(TrialState.COMPLETE,))) < FEWEST_FOR_IMPORTANCE:
            return {}
        everywhere = [parameter.name for parameter in self._space.parameters if parameter.when is None]
        evaluator = PedAnovaImportanceEvaluator(target_quantile=_TOP)
        return get_param_importances(self._study, evaluator=evaluator, params=everywhere)

    def _ask_next(self, next_number: int) -> tuple[int, Values]:
        # a new sampler for each trial: its state would be lost by an interruption
        seed = derive_seed(self._seed, "search", next_number) % 2**32
        self._study.sampler = TPESampler(seed=seed, multivariate=False)
        trial = self._study.ask()
        values: Values = {}
        for parameter in self._space.parameters:
            if parameter.applies(values):
                values[parameter.name] = _suggest(trial, parameter)
        number = trial.user_attrs.get("trial", next_number)
        trial.set_user_attr("trial", number)
        self._running[number] = trial
        return number, values

    def _requeue(self) -> None:
        """Queue trials that were interrupted again, with the same number and parameters."""
        frozen = self._frozen()
        waiting = {trial.user_attrs["trial"] for trial in frozen if trial.state == TrialState.WAITING}
        for trial in frozen:
            if trial.state == TrialState.RUNNING:
                number = trial.user_attrs.get("trial")  # without: interrupted while it was asked for
                if number is not None and number not in waiting:
                    values = trial.system_attrs.get("fixed_params", trial.params)
                    self._study.enqueue_trial(values, user_attrs={"trial": number})
                self._study.tell(trial.number, state=TrialState.FAIL)

    def _frozen(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)


def _suggest(trial: optuna.Trial, parameter: Parameter) -> Value:
    kind = parameter.kind
    if not isinstance(kind, Range):
        suggested: Any = trial.suggest_categorical(parameter.name, kind.options)
        return cast("Value", suggested)
    if kind.whole:
        return trial.suggest_int(parameter.name, int(kind.low), int(kind.high), log=kind.log)
    return trial.suggest_float(parameter.name, kind.low, kind.high, log=kind.log)


def _create(path: Path, space: Space) -> None:
    """Create the file under another name and rename it, so that it is never there half-written."""
    scratch = path.with_name(f".{path.name}.partial")
    scratch.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        storage = _open(scratch)
        study = optuna.create_study(study_name=_STUDY, storage=storage, directions=["maximize", "maximize"])
        study.enqueue_trial(space.values_of(space.given), user_attrs={"trial": 0})
        _close(storage)
        scratch.replace(path)
    except BaseException:  # such as a full disk
        scratch.unlink(missing_ok=True)
        raise


def _open(path: Path) -> optuna.storages.RDBStorage:
    return optuna.storages.RDBStorage(URL.create("sqlite", database=str(path)).render_as_string(hide_password=False))


def _close(storage: optuna.storages.RDBStorage) -> None:
    storage.remove_session()
    storage.engine.dispose()
