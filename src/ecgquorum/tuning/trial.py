"""One trial: an ensemble trained by a recipe and put to the test on the tune part."""

from dataclasses import dataclass
from pathlib import Path

import torch

from ecgquorum.cohorts import Cohort
from ecgquorum.errors import AttackError, DivergedError, FittingError, RecipeError, ScorecardError, TrainingError
from ecgquorum.evaluation import Scorecard, evaluate_recipe
from ecgquorum.metrics import Estimate
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import AttackRecipe, EvaluationRecipe, Recipe, Study
from ecgquorum.recipes.study import EPSILONS
from ecgquorum.training import check_trainable, train_ensemble
from ecgquorum.training.loop import Observer

_NO_MEMORY = "can't allocate memory"  # what PyTorch says on the CPU, as a RuntimeError

NATURAL, ATTACKED = "accuracy", "accuracy_under_attack"
"""What a search raises."""

_CONDITIONS = ("", "_under_attack", "_under_attack_on_all")
"""How names of measures end: natural, under the attack on member 0, under the attack on the whole ensemble."""

MEASURES = tuple(measure + under for measure in ("accuracy", "ua_auc", "r_iu_auc") for under in _CONDITIONS)


@dataclass(frozen=True)
class Planned:
    """A trial to be made."""

    number: int
    recipe: Recipe


@dataclass(frozen=True)
class TrialBench:
    """Where trials are made, and how they are judged.

    members: the store of trainings that trials share
    attacks: the store of crafted recordings, which those share whose first member is the same
    trials:  the folder of their bundles
    """

    cohort: Cohort
    members: Path
    attacks: Path
    trials: Path
    evaluation: EvaluationRecipe
    device: str


@dataclass(frozen=True)
class Scores:
    """What was measured, by the names in MEASURES; what is not defined is not there."""

    measures: dict[str, Estimate]


@dataclass(frozen=True)
class Failure:
    """Why there is nothing to measure, in a line."""

    reason: str


def protocol(study: Study, records: int) -> EvaluationRecipe:
    """The tune part as it is, and `records` of it under PGD at the study's second strength.

    On member 0, as in the paper, and on the whole ensemble, which tells whether the first one was merely dodged.
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


def run_trial(
    bench: TrialBench, planned: Planned, *, observer: Observer | None = None, progress: Progress = NO_PROGRESS
) -> Scores | Failure:
    """Train what is missing and measure it; a recipe that cannot be trained is an outcome, not an error."""
    cohort, run = bench.cohort, bench.trials / f"{planned.number:03d}"
    try:
        check_trainable(planned.recipe, cohort)
    except TrainingError as error:
        return Failure(str(error))
    try:
        ensemble = train_ensemble(
            planned.recipe,
            cohort,
            run,
            resume=(run / "recipe.toml").is_file(),
            device=bench.device,
            observer=observer,
            store=bench.members,
        )
        card = evaluate_recipe({"trial": ensemble}, cohort, bench.evaluation, cache=bench.attacks, progress=progress)
    except (AttackError, DivergedError, FittingError, RecipeError, ScorecardError) as error:
        return Failure(str(error))
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]  # left out of its list of names
        return Failure(f"expected a fit of features, found none (training diverged): {_one_line(error)}")
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and _NO_MEMORY not in str(error):
            raise
        return Failure(f"expected room for the network, found too little memory: {_one_line(error)}")
    card.save(run / "scorecard.json")
    return Scores(_measures(card))


def _measures(card: Scorecard) -> dict[str, Estimate]:
    found = {}
    for name in MEASURES:
        measure = name.partition("_under_attack")[0]
        condition = card.conditions[_CONDITIONS.index(name.removeprefix(measure))]
        estimate = card.estimate(
            attack=condition.attack, target=condition.target, epsilon=condition.epsilon, metric=measure
        )
        if estimate is not None:
            found[name] = estimate
    return found


def _one_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
