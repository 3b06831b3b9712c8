"""Evaluate as an evaluation recipe says: a thin layer over `evaluate`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ecgquorum.attacks import build_attack
from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.attack_conditions import AttackCondition
from ecgquorum.evaluation.ensemble_names import name_ensembles
from ecgquorum.evaluation.evaluator import evaluate
from ecgquorum.evaluation.options import EvaluationOptions
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.evaluation.transform_conditions import UNSEEN, corruption_conditions, ood_conditions
from ecgquorum.parallel import Executor
from ecgquorum.preprocessing import InputSpec
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import EvaluationRecipe
from ecgquorum.recipes.study import EPSILONS


def evaluate_recipe(
    ensembles: Ensemble | Mapping[str, Ensemble],
    cohort: Cohort,
    recipe: EvaluationRecipe,
    *,
    device: str = "auto",
    cache: str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress = NO_PROGRESS,
) -> Scorecard:
    """Call `evaluate` with the conditions and options of a recipe; the scorecard's `evaluation` is the recipe."""
    if isinstance(ensembles, Ensemble):
        ensembles = name_ensembles([ensembles])
    if not ensembles:
        raise ScorecardError("there is no ensemble to evaluate; pass at least one")
    spec = next(iter(ensembles.values())).input
    if recipe.epsilons is None:
        recipe = recipe.model_copy(update={"epsilons": EPSILONS[spec.scaling]})
    strengths = sorted(recipe.epsilons or ())
    options = EvaluationOptions(
        part=recipe.part,
        normalise=recipe.normalise,
        masking_records=recipe.masking_records,
        masking_epsilon=strengths[min(1, len(strengths) - 1)] if recipe.attacks else None,
        seed=recipe.seed,
        severities=recipe.severities,
        ood=recipe.ood,
        shift_records=recipe.shift_records,
        reference=recipe.reference,
        device=device,
    )
    card = evaluate(
        ensembles,
        cohort,
        conditions_from_recipe(recipe, spec),
        recipe.corruptions,
        options=options,
        cache=cache,
        executor=executor,
        progress=progress,
    )
    return replace(card, evaluation=recipe.model_dump(mode="json"))


def conditions_from_recipe(recipe: EvaluationRecipe, spec: InputSpec) -> list[AttackCondition]:
    """Build the recipe's attacks at every strength; an unknown attack, option or corruption is an error."""
    corruption_conditions(recipe.corruptions, recipe.severities, spec.leads, None)
    ood_conditions((one for one in recipe.ood if one != UNSEEN), spec.leads, {}, None)
    return [
        AttackCondition(build_attack(one.kind, epsilon, one.options, spec), one.target, one.records, one.name)
        for one in recipe.attacks
        for epsilon in sorted(set(one.epsilons or recipe.epsilons or EPSILONS[spec.scaling]))
    ]
