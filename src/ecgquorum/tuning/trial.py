"""One trial: an ensemble trained by a recipe and evaluated on the tune part."""

from dataclasses import dataclass
from pathlib import Path

import torch

from ecgquorum.cohorts import Cohort
from ecgquorum.errors import (
    AttackError,
    DivergedError,
    FittingError,
    MemberError,
    RecipeError,
    ScorecardError,
    TrainingError,
)
from ecgquorum.evaluation import Scorecard, evaluate_recipe
from ecgquorum.metrics import Estimate
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import AttackRecipe, EvaluationRecipe, Recipe, Study
from ecgquorum.recipes.study import EPSILONS
from ecgquorum.training import check_trainable, train_ensemble

_OUT_OF_MEMORY = "can't allocate memory"  # in the RuntimeError that PyTorch raises on the CPU

NATURAL, ATTACKED = "accuracy", "accuracy_under_attack"
"""The two objectives of a search."""

_CONDITIONS = ("", "_under_attack", "_under_attack_on_all")
"""Suffixes of metric names: natural, under the attack on member 0, under the attack on the whole ensemble."""

MEASURES = tuple(measure + under for measure in ("accuracy", "ua_auc", "r_iu_auc") for under in _CONDITIONS)


@dataclass(frozen=True)
class PlannedTrial:
    """A trial to run."""

    number: int
    recipe: Recipe


@dataclass(frozen=True)
class TrialSetup:
    """Data, folders and evaluation of all trials of a search.

    members: folder of checkpoints that trials share
    attacks: cache of attacked recordings, shared by trials with the same first member
    trials:  folder of their bundles
    """

    cohort: Cohort
    members: Path
    attacks: Path
    trials: Path
    evaluation: EvaluationRecipe
    device: str


@dataclass(frozen=True)
class Scores:
    """The metrics of a trial, by the names in MEASURES; undefined ones are left out."""

    measures: dict[str, Estimate]


@dataclass(frozen=True)
class Failure:
    """Why a trial has no metrics, in a line."""

    reason: str


def evaluation_of_trials(study: Study, records: int) -> EvaluationRecipe:
    """Return the evaluation: the tune part, natural and `records` of it under PGD at the study's second strength.

    PGD attacks member 0, as in the paper, and the whole ensemble.
    """
    strengths = sorted(study.evaluation.epsilons or EPSILONS[study.input.scaling])
    return EvaluationRecipe(
        part="tune",
        epsilons=(strengths[min(1, len(strengths) - 1)],),
        attacks=(
            AttackRecipe(kind="pgd", records=records),
            AttackRecipe(kind="pgd", target="ensemble", records=records),
        ),
        normalise=study.evaluation.normalise,
        masking_records=0,
        seed=study.evaluation.seed,
    )


def run_trial(setup: TrialSetup, planned: PlannedTrial, progress: Progress = NO_PROGRESS) -> Scores | Failure:
    """Train and evaluate a trial's recipe; one that cannot be trained is a Failure, not an error."""
    cohort, run = setup.cohort, setup.trials / f"{planned.number:03d}"
    try:
        check_trainable(planned.recipe, cohort)
    except (MemberError, RecipeError, TrainingError) as error:
        return Failure(str(error))
    try:
        ensemble = train_ensemble(
            planned.recipe.change(risk=False),  # the evaluation of a trial does not use it
            cohort,
            run,
            resume=(run / "recipe.toml").is_file(),
            device=setup.device,
            store=setup.members,
            progress=progress,
        )
        card = evaluate_recipe({"trial": ensemble}, cohort, setup.evaluation, cache=setup.attacks, progress=progress)
    except (AttackError, DivergedError, FittingError, RecipeError, ScorecardError) as error:
        return Failure(str(error))
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]  # left out of its list of names
        return Failure(f"the regression of the decorrelation loss failed (training diverged): {_first_line(error)}")
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and _OUT_OF_MEMORY not in str(error):
            raise
        return Failure(f"out of memory: {_first_line(error)}")
    card.save(run / "scorecard.json")
    return Scores(_read_metrics(card))


def _read_metrics(card: Scorecard) -> dict[str, Estimate]:
    found = {}
    for name in MEASURES:
        measure = name.partition("_under_attack")[0]
        condition = card.conditions[_CONDITIONS.index(name.removeprefix(measure))]
        estimate = card.estimate(
            attack=condition.attack, target=condition.target, epsilon=condition.epsilon, metric=measure, detail=""
        )
        if estimate is not None:
            found[name] = estimate
    return found


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
