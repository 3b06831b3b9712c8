"""Run a study in a folder; the same call continues an interrupted one.

STUDY/study.toml      the study with its defaults
STUDY/cohort/         its recordings, where it builds them itself
STUDY/members/        checkpoints that strategies share
STUDY/runs/RUN/       the bundle of each run: a strategy, with its seed and name where they differ from the study's
STUDY/attacks/        cache of attacked recordings; may be deleted when the study is done
STUDY/scorecard.json  all metrics, and scorecard.npz with every prediction
STUDY/report/         the page, figures and tables
"""

from pathlib import Path

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts import Cohort, build_cohort, hold_out_class, open_source
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import RecipeError, ScorecardError
from ecgquorum.evaluation import Scorecard, conditions_from_recipe, evaluate_recipe
from ecgquorum.evaluation.corruption_summary import check_reference
from ecgquorum.evaluation.ensemble_names import hash_score_models, read_training_facts
from ecgquorum.evaluation.transform_conditions import ood_conditions
from ecgquorum.parallel import Executor
from ecgquorum.preprocessing import InputSpec
from ecgquorum.progress import NO_PROGRESS, Progress, StageProgress
from ecgquorum.recipes import EvaluationRecipe, Study, load_study
from ecgquorum.report import write_report
from ecgquorum.storage import open_store
from ecgquorum.study.training_tasks import StudyFolders, run_path, train_distributed, train_run
from ecgquorum.training import check_trainable, resolve_recipe


def run_study(
    study: Study,
    out: str | Path,
    *,
    cohort: Cohort | None = None,
    store: str | Path | None = None,
    device: str = "auto",
    progress: Progress = NO_PROGRESS,
    executor: Executor | None = None,
) -> tuple[Scorecard, Path]:
    """Train, attack, evaluate and report all runs of a study; return the scorecard and the path of the page.

    The same call continues an interrupted study. Runs and attacks may be added between calls; the recipe of the
    members may not change.

    cohort:   the recordings; None: built from the source that the study names
    store:    folder or URL of checkpoints and attacks instead of `out`; with an executor whose machines do not share
              `out`, bundles are then made by this process
    executor: trains and attacks in several processes; None: this process, one strategy after another
    """
    out = Path(out)
    _check_out(out, study, cohort)
    recipes = study.recipes()
    for recipe in recipes.values():
        resolve_recipe(recipe)
    write_atomic(out / "study.toml", study.toml())
    cohort = hold_out_class(cohort or _open_own_cohort(study, out, progress), study.hold_out)
    _check_plans(study, cohort)
    kept = open_store(store or out)
    if executor:
        folders = StudyFolders(out.resolve(), kept.join("members").where(), bundles_here=store is not None)
        named = train_distributed(recipes, cohort, folders, executor, device, progress)
    else:
        named = {
            name: train_run(
                recipe,
                cohort,
                run_path(out, name),
                kept.join("members").where(),
                device=device,
                progress=StageProgress(progress, f"{number}/{len(recipes) + 1} {name}"),
            )
            for number, (name, recipe) in enumerate(recipes.items(), start=1)
        }
    card = _load_scorecard(study, out, cohort, named)
    if card is None:
        card = _evaluate(study, kept.join("attacks").where(), cohort, named, device, progress, executor)
        card.save(out / "scorecard.json")
    return card, write_report([card], out / "report")


def _load_scorecard(study: Study, out: Path, cohort: Cohort, ensembles: dict[str, Ensemble]) -> Scorecard | None:
    """Return the stored scorecard if it is that of these ensembles under this evaluation.

    One of an earlier version has no hashes of recipes, so its comparisons are missing or mix settings: it is made anew.
    """
    path = out / "scorecard.json"
    if not path.is_file():
        return None
    try:
        card = Scorecard.load(path)
    except ScorecardError:
        return None
    models = [
        (name, one.card["weights_sha256"], read_training_facts(one).recipe_hashes, hash_score_models(one))
        for name, one in ensembles.items()
    ]
    known = [(one.name, one.model, one.recipe_hashes, one.fitted) for one in card.ensembles]
    defaults = EvaluationRecipe().model_dump(mode="json")  # of settings that are newer than the scorecard
    found = (known, card.data.data, defaults | card.evaluation)
    return card if found == (models, cohort.data_hash, study.evaluation.model_dump(mode="json")) else None


def _evaluate(
    study: Study,
    attacks: str,
    cohort: Cohort,
    ensembles: dict[str, Ensemble],
    device: str,
    progress: Progress,
    executor: Executor | None,
) -> Scorecard:
    n_stages = len(ensembles) + 1
    stage = StageProgress(progress, f"{n_stages}/{n_stages} evaluation")
    return evaluate_recipe(
        ensembles,
        cohort,
        study.evaluation,
        cache=attacks,
        progress=stage,
        executor=executor,
        device=device,
    )


def _open_own_cohort(study: Study, out: Path, progress: Progress) -> Cohort:
    """Open the cohort in the study's folder; build it first if there is none."""
    path = out / "cohort"
    if (path / "cohort.json").is_file():
        return Cohort(path)
    described = study.cohort
    assert described is not None  # noqa: S101 (checked before anything was written)
    source = open_source(described.source, records=described.records, seconds=described.seconds, seed=described.seed)
    cohort, _ = build_cohort(source, path, progress=progress)
    return cohort


def _check_plans(study: Study, cohort: Cohort) -> None:
    """Raise an error for a strategy that cannot be trained or a condition that is unknown, before any training."""
    recipes, evaluation = study.recipes(), study.evaluation
    check_reference(recipes, evaluation.reference)
    for recipe in recipes.values():
        check_trainable(recipe, cohort)
    spec = InputSpec(cohort.leads, cohort.rate_hz, study.input.scaling, study.input.window_s)
    conditions_from_recipe(evaluation, spec)
    ood_conditions(evaluation.ood, cohort.leads, cohort.count_unseen(evaluation.part), None)


def _check_out(out: Path, study: Study, cohort: Cohort | None) -> None:
    if cohort is None and study.cohort is None:
        raise RecipeError(
            f"{study.name}: the study names no recordings; give --cohort DIR, made with: ecgquorum cohort build SOURCE "
            "--out DIR"
        )
    if out.exists() and not out.is_dir():
        raise RecipeError(f"{out}: expected a folder, found a file")
    started = out / "study.toml"
    if started.is_file():
        earlier = load_study(started)
        if (earlier.recipe, earlier.cohort) != (study.recipe, study.cohort):
            raise RecipeError(f"{out}: the study was started with another recipe; choose another --out")
    elif out.is_dir() and any(entry.suffix != ".partial" for entry in out.iterdir()):
        raise RecipeError(f"{out}: expected a new folder or a study to continue, found something else")
