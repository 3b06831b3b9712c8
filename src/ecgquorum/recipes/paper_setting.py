"""Whether a recipe trains in the paper's setting, so that its ensembles can test the paper's claims.

The setting of Wiedeman & Wang: three members; clean training without gain, stretch or flip; decorrelation of features
with the published loss, weight 0.2 and r = 32; the two complementary ring filters; adversarial training and DVERGE with
20 steps of a tenth of the weakest epsilon. Network, optimiser, number of epochs and random crops may differ: they are
shown beside the results, and are the same for both sides of every comparison.
"""

from collections.abc import Iterator
from typing import Any

from ecgquorum.recipes.study import EPSILONS
from ecgquorum.recipes.training import PAPER_BANDS, Bands, Recipe

PAPER_PARTS = ("dec", "part", "adv", "dverge")
"""The strategies of which the paper's are sums."""

_MEMBERS = 3
_PLAIN = {"gain": 1.0, "flip": 0.0, "stretch": 1.0}  # values that leave recordings as they are
_DECORRELATION = {"weight": 0.2, "projected": 32, "projection": "regressor", "whiten": False}


def list_deviations(recipe: Recipe) -> tuple[str, ...]:
    """List how a recipe differs from the paper's setting, such as "dec: weight 0.05"; empty in that setting.

    Before the colon stands the strategy that differs, or "training".
    """
    found = [f"training: {recipe.members} members"] if recipe.members != _MEMBERS else []
    for name, plain in _PLAIN.items():
        value = getattr(recipe.training, name)
        if value != plain:
            found.append(f"training: {name} {value:g}")
    for name in recipe.parts:
        options = recipe.strategies.get(name, {})
        found += [f"{name}: {text}" for text in _differ(name, options, EPSILONS[recipe.input.scaling][0])]
    return tuple(found)


def _differ(name: str, options: dict[str, Any], epsilon: float) -> Iterator[str]:
    """How one strategy differs from the paper's; parameters that a recipe leaves out have their defaults."""
    if name == "dec":
        form = options.get("form", "logits")
        if form != "paper":
            yield f"form {form}" + (f", weight {options['weight']:g}" if "weight" in options else "")
        for key, value in _DECORRELATION.items():
            if form == "paper" and options.get(key, value) != value:
                yield f"{key} {options[key]}"
    elif name == "part":
        bands = tuple(options.get("bands", PAPER_BANDS))
        if bands != PAPER_BANDS:
            yield f"bands {', '.join(map(_describe_bands, bands))}"
    elif name in ("adv", "dverge"):
        steps = (options.get("steps", 20), options.get("step", 0.1), options.get("epsilon", epsilon))
        if steps != (20, 0.1, epsilon):
            yield f"{steps[0]} steps of {steps[1]:g} epsilon, {steps[2]:g}"
    elif name == "harden" and {"share", "epsilon"} <= options.keys():
        which = ", ".join(map(str, options.get("members") or ()))
        taken = "one step" if options.get("steps", 1) == 1 else f"{options['steps']} steps"
        yield f"{options['share']:.0%} of each batch attacked by {taken} of up to {options['epsilon']:g}" + (
            f", members {which}" if which else ""
        )
    else:
        yield ", ".join(f"{key} {value}" for key, value in options.items()) or "not a strategy of the paper"


def _describe_bands(bands: Bands) -> str:
    """The bands of one member, such as "0 to 15 Hz and 30 to 45 Hz"."""
    return bands if isinstance(bands, str) else " and ".join(f"{low:g} to {high:g} Hz" for low, high in bands)
