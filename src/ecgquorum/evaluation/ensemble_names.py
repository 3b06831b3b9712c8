"""Names and descriptions of ensembles in tables, from the recipe in their card."""

from collections.abc import Iterable

from ecgquorum.ensemble import Ensemble
from ecgquorum.recipes import PAPER_BANDS, Recipe, parse_recipe
from ecgquorum.recipes.training import Bands


def name_ensembles(ensembles: Iterable[Ensemble]) -> dict[str, Ensemble]:
    """Name each by its strategy; add seed, recipe and number only where names would be equal."""
    ensembles = list(ensembles)
    for parts in ((), ("seed",), ("seed", "recipe")):
        names = [_make_name(ensemble, parts) for ensemble in ensembles]
        if len(set(names)) == len(names):
            return dict(zip(names, ensembles, strict=True))
    return {f"{name} #{number}": ensemble for number, (name, ensemble) in enumerate(zip(names, ensembles, strict=True))}


def describe_ensemble(ensemble: Ensemble) -> tuple[str, int, str]:
    """Strategy, seed and a description of the network; empty for an ensemble without a recipe."""
    if "recipe" not in ensemble.card:
        return "", 0, ""
    recipe = parse_recipe(ensemble.card["recipe"])
    return recipe.strategy, recipe.seed, _describe_network(recipe)


def _make_name(ensemble: Ensemble, parts: tuple[str, ...]) -> str:
    if "recipe" not in ensemble.card:
        return "ensemble"
    recipe = parse_recipe(ensemble.card["recipe"])
    suffixes = {"seed": f" seed {recipe.seed}", "recipe": f" {recipe.name}"}
    return recipe.strategy + "".join(suffixes[part] for part in parts)


def _describe_network(recipe: Recipe) -> str:
    """The network, and how its training differs from the paper's."""
    text = ", ".join((recipe.member.kind, *(f"{name} {value}" for name, value in recipe.member.options.items())))
    harden, bands = recipe.strategies.get("harden"), recipe.strategies.get("part", {}).get("bands", PAPER_BANDS)
    if harden and "harden" in recipe.parts:
        text += f", hardened ({harden['share']:.0%} of each batch attacked by one step of up to {harden['epsilon']:g})"
    if "part" in recipe.parts and tuple(bands) != PAPER_BANDS:
        text += f", in other bands than the paper's ({', '.join(map(_describe_bands, bands))})"
    return text


def _describe_bands(bands: Bands) -> str:
    """The bands of one member, such as "0 to 15 Hz and 30 to 45 Hz"."""
    return bands if isinstance(bands, str) else " and ".join(f"{low:g} to {high:g} Hz" for low, high in bands)
