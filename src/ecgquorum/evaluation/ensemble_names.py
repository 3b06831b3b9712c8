"""Names and descriptions of ensembles in tables, from the recipe in their card."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ecgquorum.ensemble import Ensemble
from ecgquorum.evaluation.metric_rows import RECIPE_TABLES
from ecgquorum.recipes import Recipe, TrainingRecipe, list_deviations, parse_recipe

_TRAINING_TEXTS = {
    "crop_s": "random crops of {:g} s",
    "gain": "gain {:g}",
    "stretch": "stretch {:g}",
    "flip": "flip {:g}",
    "label_smoothing": "label smoothing {:g}",
    "ema": "weights averaged with {:g}",
    "refit_head": "last layer fitted again",
}


def name_ensembles(ensembles: Iterable[Ensemble]) -> dict[str, Ensemble]:
    """Name each by its strategy; add seed, recipe and number only where names would be equal."""
    ensembles = list(ensembles)
    for parts in ((), ("seed",), ("seed", "recipe")):
        names = [_make_name(ensemble, parts) for ensemble in ensembles]
        if len(set(names)) == len(names):
            return dict(zip(names, ensembles, strict=True))
    return {f"{name} #{number}": ensemble for number, (name, ensemble) in enumerate(zip(names, ensembles, strict=True))}


@dataclass(frozen=True)
class TrainingFacts:
    """What a recipe says about an ensemble; all empty for one without a recipe.

    network:       the members and their training, without what the strategy adds
    deviations:    how it was trained otherwise than in the paper's setting; empty in that setting
    recipe_hashes: "TABLE: HASH" of input, member, training and every strategy of the recipe
    """

    strategy: str = ""
    seed: int = 0
    network: str = ""
    deviations: tuple[str, ...] = ("trained without a recipe",)
    recipe_hashes: tuple[str, ...] = ()


def read_training_facts(ensemble: Ensemble) -> TrainingFacts:
    """Read the recipe in the ensemble's card."""
    if "recipe" not in ensemble.card:
        return TrainingFacts()
    recipe = parse_recipe(ensemble.card["recipe"])
    return TrainingFacts(
        recipe.strategy, recipe.seed, _describe_network(recipe), list_deviations(recipe), tuple(_hash_tables(recipe))
    )


def hash_score_models(ensemble: Ensemble) -> str:
    """Hash the risk, which depends on the distance, or the distance alone; empty where neither was fitted."""
    fitted = ensemble.risk_model or ensemble.distance
    return fitted.sha256 if fitted else ""


def _hash_tables(recipe: Recipe) -> Iterator[str]:
    """Hash what decides the weights beside seed and number of members; tables of unused strategies do not."""
    tables = recipe.model_dump(mode="json", include=set(RECIPE_TABLES))
    tables |= {name: recipe.strategies.get(name, {}) for name in recipe.parts}
    for name, table in tables.items():
        yield f"{name}: {hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()[:16]}"


def _make_name(ensemble: Ensemble, parts: tuple[str, ...]) -> str:
    if "recipe" not in ensemble.card:
        return "ensemble"
    recipe = parse_recipe(ensemble.card["recipe"])
    suffixes = {"seed": f" seed {recipe.seed}", "recipe": f" {recipe.name}"}
    return recipe.strategy + "".join(suffixes[part] for part in parts)


def _describe_network(recipe: Recipe) -> str:
    """The network, and what changes recordings and labels in its training, such as "compact, width 1; 12 epochs"."""
    network = (recipe.member.kind, *(f"{name} {value}" for name, value in recipe.member.options.items()))
    training, plain = recipe.training, TrainingRecipe()
    details = [f"{training.epochs} epochs"]
    details += [
        text.format(getattr(training, name))
        for name, text in _TRAINING_TEXTS.items()
        if getattr(training, name) != getattr(plain, name)
    ]
    return f"{', '.join(network)}; {', '.join(details)}"
