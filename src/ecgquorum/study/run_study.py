"""A study's folder, which can be left and gone on with at any moment.

STUDY/study.toml      the study, every default spelled out
STUDY/cohort/         its recordings, where it builds them itself
STUDY/members/        the store of trainings that strategies share
STUDY/runs/STRATEGY/  the bundle of each strategy
STUDY/attacks/        crafted recordings, to be found again; may be deleted when the study is done
STUDY/scorecard.json  what was measured, and scorecard.npz with every answer
STUDY/report/         the page, figures and tables
"""

from pathlib import Path

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.attacks import build_attack
from ecgquorum.cohorts import Cohort, build_cohort, open_source
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import RecipeError, ScorecardError
from ecgquorum.evaluation import Scorecard, evaluate, name_ensembles
from ecgquorum.evaluation.conditions import plan_conditions
from ecgquorum.parallel import Executor
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import Study, load_study
from ecgquorum.report import write_report
from ecgquorum.study.progress import StudyProgress
from ecgquorum.study.training_tasks import train_distributed, train_strategy
from ecgquorum.training import check_trainable


def run_study(
    study: Study,
    out: str | Path,
    *,
    cohort: Cohort | None = None,
    device: str = "auto",
    progress: StudyProgress | None = None,
    executor: Executor | None = None,
) -> tuple[Scorecard, Path]:
    """Train what is missing, attack, measure and report; gives the scorecard and the page.

    The same call goes on where an earlier one was interrupted. Strategies and attacks may be added between calls; how
    members are trained may not change.

    cohort:   the recordings; None: built from what the study names
    executor: who trains and attacks; None: this process, one thing after another
    """
    out = Path(out)
    _check_out(out, study, cohort)
    write_atomic(out / "study.toml", study.toml())
    cohort = cohort or _own_cohort(study, out, progress)
    _check_plans(study, cohort)
    if executor:
        ensembles = train_distributed(study, cohort, out, executor, device, progress)
    else:
        ensembles = [_trained_here(study, n, cohort, out, device, progress) for n in range(len(study.strategies))]
    card = _scored(study, out, cohort, name_ensembles(ensembles), device, progress, executor)
    return card, write_report([card], out / "report")


def _trained_here(
    study: Study, number: int, cohort: Cohort, out: Path, device: str, progress: StudyProgress | None
) -> Ensemble:
    recipe = study.recipe.with_strategy(study.strategies[number])
    stage = f"{number + 1}/{len(study.strategies) + 1} {recipe.strategy}"
    observer = progress.observer(recipe, stage) if progress else None
    return train_strategy(recipe, cohort, out, device=device, observer=observer)


def _scored(
    study: Study,
    out: Path,
    cohort: Cohort,
    ensembles: dict[str, Ensemble],
    device: str,
    progress: StudyProgress | None,
    executor: Executor | None,
) -> Scorecard:
    """The scorecard of these ensembles under this protocol: the one that is there, or a new one."""
    path = out / "scorecard.json"
    if path.is_file():
        try:
            found = Scorecard.load(path)
        except ScorecardError:
            found = None
        models = [(name, ensemble.card["weights_sha256"]) for name, ensemble in ensembles.items()]
        if found and (
            ([(one.name, one.model) for one in found.ensembles], found.data.data, found.evaluation)
            == (models, cohort.data_hash, study.evaluation.model_dump(mode="json"))
        ):
            return found
    told = progress.told(f"{len(study.strategies) + 1}/{len(study.strategies) + 1} test") if progress else None
    card = evaluate(
        ensembles, cohort, study.evaluation, store=out / "attacks", told=told, executor=executor, device=device
    )
    card.save(path)
    return card


def _own_cohort(study: Study, out: Path, progress: StudyProgress | None) -> Cohort:  # noqa: ARG001
    place = out / "cohort"
    if (place / "cohort.json").is_file():
        return Cohort(place)
    asked = study.cohort
    assert asked is not None  # noqa: S101 (checked before anything was written)
    source = open_source(asked.source, records=asked.records, seconds=asked.seconds, seed=asked.seed)
    cohort, _ = build_cohort(source, place)
    return cohort


def _check_plans(study: Study, cohort: Cohort) -> None:
    """Refuse a strategy that cannot be trained, or an attack that there is not, before hours go into the others."""
    for strategy in study.strategies:
        check_trainable(study.recipe.with_strategy(strategy), cohort)
    spec = InputSpec(cohort.leads, cohort.rate_hz, study.input.scaling, study.input.window_s)
    for condition, recipe in plan_conditions(study.evaluation):
        if recipe:
            build_attack(recipe.kind, condition.epsilon, recipe.options, spec)


def _check_out(out: Path, study: Study, cohort: Cohort | None) -> None:
    if cohort is None and study.cohort is None:
        raise RecipeError(
            f"{study.name}: expected --cohort DIR, since the study names no recordings; "
            "make one with: ecgquorum cohort build SOURCE --out DIR"
        )
    if out.exists() and not out.is_dir():
        raise RecipeError(f"{out}: expected a folder, found a file")
    begun = out / "study.toml"
    if begun.is_file():
        earlier = load_study(begun)
        if (earlier.recipe, earlier.cohort) != (study.recipe, study.cohort):
            raise RecipeError(
                f"{out}: expected the recipe that this study was begun with, found another; choose another --out"
            )
    elif out.is_dir() and any(entry.suffix != ".partial" for entry in out.iterdir()):
        raise RecipeError(f"{out}: expected a new folder or a study to go on with, found something else")
