"""The search space: parameters of a recipe with their ranges, and the conversion between them and recipes.

A parameter is named by the recipe's key that it sets, such as `strategies.dec.weight`. Ranges contain the value of the
given recipe, so that a search can start with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ecgquorum.errors import TuningError
from ecgquorum.recipes import Recipe
from ecgquorum.recipes.training import PAPER_BANDS, Bands
from ecgquorum.training import resolve_recipe

Value = float | int | str | bool
Values = dict[str, Value]

_PARTITION = "strategies.part"
BANDS, BELOW, ABOVE, FIRST = (f"{_PARTITION}.{key}" for key in ("bands", "below_hz", "above_hz", "first"))
GIVEN, RINGS, CUT = "given", "rings", "cut"
_LARGEST_PROJECTION = 64


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; `log`: uniform in the logarithm; `whole`: integers."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def widen_to(self, value: float) -> "Range":
        """Return the range, widened to contain the value; a range that contains 0 cannot be logarithmic."""
        return replace(self, low=min(self.low, value), high=max(self.high, value), log=self.log and value > 0)


@dataclass(frozen=True)
class Choice:
    """One of several options."""

    options: tuple[str | bool, ...]


@dataclass(frozen=True)
class Parameter:
    """A value that a search may change.

    about: its meaning, in a sentence
    when:  another parameter and the value of it for which this one applies
    """

    name: str
    about: str
    kind: Range | Choice
    when: tuple[str, Value] | None = None

    def applies(self, values: Mapping[str, Value]) -> bool:
        """Whether the parameter has an effect beside these values."""
        return self.when is None or values.get(self.when[0]) == self.when[1]


@dataclass(frozen=True)
class Space:
    """The parameters of a search around a recipe.

    given:   the recipe that the search starts with, every default written out
    rate_hz: of the recordings
    """

    given: Recipe
    rate_hz: float
    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(parameter.name for parameter in self.parameters)

    def values_of(self, recipe: Recipe) -> Values:
        """Return the parameters of a recipe of this space."""
        found = _band_values(self, recipe) if BANDS in self.names else {}
        for name in self.names:
            if not name.startswith(_PARTITION):
                found[name] = get_key(recipe, name)
        return {p.name: found[p.name] for p in self.parameters if p.applies(found)}

    def recipe_of(self, values: Mapping[str, Value]) -> Recipe:
        """Return the given recipe with these parameters."""
        fields: dict[str, Any] = self.given.model_dump()
        set_keys = {name: value for name, value in values.items() if not name.startswith(_PARTITION)}
        if BANDS in values:
            set_keys[BANDS] = _bands(self, values)  # type: ignore[assignment]
        for name, value in set_keys.items():
            *tables, key = name.split(".")
            table = fields
            for part in tables:
                table = table[part]
            table[key] = value
        return Recipe.model_validate(fields)

    def restrict(self, wanted: tuple[str, ...] | None) -> "Space":
        """Return the space of some parameters, by name, by table (`member`) or by strategy (`dec`); None: all."""
        if wanted is None:
            return self
        unknown = [one for one in wanted if not any(_selects(one, name) for name in self.names)]
        if unknown or not wanted:
            found = f"{unknown[0]!r}" if unknown else "nothing"
            raise TuningError(f"--vary: expected some of {', '.join(self.names)}, or a table of them; found {found}")
        kept = tuple(p for p in self.parameters if any(_selects(one, p.name) for one in wanted))
        alone = next((p for p in kept if p.when and p.when[0] not in {other.name for other in kept}), None)
        if alone and alone.when:
            raise TuningError(f"--vary: {alone.name} needs {alone.when[0]} beside it; add that")
        return replace(self, parameters=kept)


def search_space(recipe: Recipe, rate_hz: float) -> Space:
    """Return all parameters that may be changed in this recipe with its strategy."""
    recipe = resolve_recipe(recipe).recipe
    several = recipe.members > 1
    found = [*_network(recipe), *_augmentation(recipe), *_hardening(recipe)]
    if "dec" in recipe.parts and several:
        found += _decorrelation(recipe)
    if "part" in recipe.parts and several:
        found += _partition(recipe, rate_hz)
    return Space(recipe, rate_hz, tuple(found))


def get_key(recipe: Recipe, name: str) -> Any:
    """Return the value of a recipe's key such as `strategies.dec.weight`; None where it has none."""
    value: Any = recipe.model_dump()
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _selects(wanted: str, name: str) -> bool:
    return any(f"{name}.".startswith(f"{prefix}{wanted}.") for prefix in ("", "strategies."))


def _network(recipe: Recipe) -> list[Parameter]:
    width, rate = get_key(recipe, "member.width"), recipe.training.learning_rate
    found = []
    if isinstance(width, float):
        found.append(
            Parameter(
                "member.width",
                "Factor on the number of channels: half to one and a half times the given one.",
                Range(width / 2, min(16.0, 1.5 * width), log=True),
            )
        )
    if isinstance(get_key(recipe, "member.dropout"), float):
        found.append(_number(recipe, "member.dropout", "Share of activations dropped in training.", Range(0.0, 0.5)))
    about = "Peak of the learning rate: a quarter of the given one to four times it."
    return [*found, Parameter("training.learning_rate", about, Range(rate / 4, 4 * rate, log=True))]


def _augmentation(recipe: Recipe) -> list[Parameter]:
    found = [
        _number(recipe, "training.gain", "Recordings are scaled by up to this factor.", Range(1.0, 2.0)),
        _number(recipe, "training.stretch", "Recordings are stretched by up to this factor.", Range(1.0, 1.3)),
        _number(recipe, "training.flip", "Share of recordings turned upside down.", Range(0.0, 0.5)),
        _number(recipe, "training.label_smoothing", "Share of the target spread over all classes.", Range(0.0, 0.2)),
    ]
    crop_s = recipe.training.crop_s
    if crop_s is not None:
        length = Range(max(1.0, crop_s / 2), min(recipe.input.window_s, 2 * crop_s))
        found.append(_number(recipe, "training.crop_s", "Length of the stretch that is trained on, in s.", length))
    return found


def _hardening(recipe: Recipe) -> list[Parameter]:
    epsilon = get_key(recipe, "strategies.harden.epsilon")
    if "harden" not in recipe.parts or epsilon is None:
        return []
    return [
        _number(
            recipe, "strategies.harden.share", "Share of every batch that is attacked by one step.", Range(0.1, 1.0)
        ),
        _number(
            recipe,
            "strategies.harden.epsilon",
            "Largest change by that step, in the units of the input: a third of the given one to twice it.",
            Range(epsilon / 3, 2 * epsilon, log=True),
        ),
    ]


def _decorrelation(recipe: Recipe) -> list[Parameter]:
    most = max(1, min(_LARGEST_PROJECTION, recipe.training.batch_size - 2))  # as `fewest_records` wants it
    given = recipe.strategies["dec"]
    published = given["whiten"] or given["projection"] != "regressor"  # options that no other form has
    forms = Choice(("paper",) if published else ("logits", "paper"))
    return [
        _number(
            recipe, "strategies.dec.weight", "λ, the weight of the decorrelation loss.", Range(0.005, 0.5, log=True)
        ),
        _number(
            recipe,
            "strategies.dec.projected",
            "r, the number of random directions that predict; batches must be larger by two.",
            Range(min(4, most), most, log=True, whole=True),
        ),
        *([Parameter("strategies.dec.form", "What is decorrelated.", forms)] if given["form"] in forms.options else []),
    ]


def _partition(recipe: Recipe, rate_hz: float) -> list[Parameter]:
    own = get_key(recipe, BANDS) != PAPER_BANDS
    highest = min(40.0, 0.8 * rate_hz / 2)
    edges = Range(min(3.0, highest / 2), highest, log=True)
    cut = (BANDS, CUT)
    return [
        Parameter(
            BANDS,
            "Bands of the members: the paper's rings, below and above a cut, or as given.",
            Choice((GIVEN, RINGS, CUT) if own else (RINGS, CUT)),
        ),
        Parameter(BELOW, "Upper edge of the member below the cut, in Hz.", edges, cut),
        Parameter(ABOVE, "Lower edge of the member above it, in Hz; less than the other: they overlap.", edges, cut),
        Parameter(
            FIRST, "Whether the first member sees all, or the band below the cut.", Choice(("all", "below")), cut
        ),
    ]


def _number(recipe: Recipe, name: str, about: str, kind: Range) -> Parameter:
    return Parameter(name, about, kind.widen_to(get_key(recipe, name)))


def _bands(space: Space, values: Mapping[str, Value]) -> tuple[Bands, ...]:
    layout = values[BANDS]
    if layout != CUT:
        given: tuple[Bands, ...] = get_key(space.given, BANDS)
        return given if layout == GIVEN else PAPER_BANDS
    below: Bands = ((0.0, float(values[BELOW])),)
    above: Bands = ((float(values[ABOVE]), space.rate_hz / 2),)
    return ("all", below, above) if values[FIRST] == "all" else (below, above, below)


def _band_values(space: Space, recipe: Recipe) -> Values:
    """Return the values that `_bands` made these bands from."""
    bands = get_key(recipe, BANDS)
    if bands == PAPER_BANDS:
        return {BANDS: RINGS}
    if bands == get_key(space.given, BANDS):
        return {BANDS: GIVEN}
    first = "all" if bands[0] == "all" else "below"
    below, above = bands[1:3] if first == "all" else bands[:2]
    return {BANDS: CUT, BELOW: float(below[0][1]), ABOVE: float(above[0][0]), FIRST: first}
