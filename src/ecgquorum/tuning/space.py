"""What a search may change in a recipe: parameters with ranges, and the way between them and recipes.

A parameter is named by the recipe's key that it sets. Ranges are wide enough for the given recipe to be in them, so
that a search can begin with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ecgquorum.errors import TuningError
from ecgquorum.recipes import PartitionRecipe, Recipe
from ecgquorum.recipes.training import Bands

Value = float | int | str | bool
Values = dict[str, Value]

BANDS, BELOW, ABOVE, FIRST = ("partition.bands", "partition.below_hz", "partition.above_hz", "partition.first")
GIVEN, RINGS, CUT = "given", "rings", "cut"
_LARGEST_FIT = 64


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; `log`: as many between 1 and 2 as between 2 and 4."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def holding(self, value: float) -> "Range":
        """The same, widened to hold the value; what holds nothing cannot be logarithmic."""
        return replace(self, low=min(self.low, value), high=max(self.high, value), log=self.log and value > 0)


@dataclass(frozen=True)
class Choice:
    """One of several."""

    options: tuple[str | bool, ...]


@dataclass(frozen=True)
class Parameter:
    """Something that a search may change.

    about: what it is, in a sentence
    when:  the parameter, and its value, without which this one means nothing
    """

    name: str
    about: str
    kind: Range | Choice
    when: tuple[str, Value] | None = None

    def applies(self, values: Mapping[str, Value]) -> bool:
        """Whether it means anything beside these."""
        return self.when is None or values.get(self.when[0]) == self.when[1]


@dataclass(frozen=True)
class Space:
    """The parameters of a search around the recipe that was given; `rate_hz` is that of the recordings."""

    given: Recipe
    rate_hz: float
    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(parameter.name for parameter in self.parameters)

    def values_of(self, recipe: Recipe) -> Values:
        """The parameters of a recipe of this space."""
        found = _band_values(self, recipe) if BANDS in self.names else {}
        for name in self.names:
            if not name.startswith("partition."):
                table, key = name.split(".")
                found[name] = getattr(getattr(recipe, table), key)
        return {p.name: found[p.name] for p in self.parameters if p.applies(found)}

    def recipe_of(self, values: Mapping[str, Value]) -> Recipe:
        """The given recipe with these parameters instead of its own."""
        fields: dict[str, Any] = self.given.model_dump()
        for name, value in values.items():
            if not name.startswith("partition."):
                table, key = name.split(".")
                fields[table][key] = value
        if BANDS in values:
            fields["partition"]["bands"] = _bands(self, values)
        return Recipe.model_validate(fields)

    def chosen(self, wanted: tuple[str, ...] | None) -> "Space":
        """Only the parameters that are wanted, by their names or by the tables that they are in; None: all."""
        if wanted is None:
            return self
        unknown = [w for w in wanted if not any(_means(w, name) for name in self.names)]
        if unknown or not wanted:
            found = f"{unknown[0]!r}" if unknown else "nothing"
            raise TuningError(f"--vary: expected some of {', '.join(self.names)}, or a table of them; found {found}")
        kept = tuple(p for p in self.parameters if any(_means(w, p.name) for w in wanted))
        dangling = next((p for p in kept if p.when and p.when[0] not in {other.name for other in kept}), None)
        if dangling and dangling.when:
            raise TuningError(f"--vary: expected {dangling.when[0]} beside {dangling.name}, found it alone")
        return replace(self, parameters=kept)


def search_space(recipe: Recipe, rate_hz: float) -> Space:
    """All that may be changed in this recipe under its strategy."""
    several = recipe.members > 1
    found = [*_network(recipe), *_augmentation(recipe), *_hardening(recipe)]
    if "dec" in recipe.parts and several:
        found += _decorrelation(recipe)
    if "part" in recipe.parts and several:
        found += _partition(recipe, rate_hz)
    return Space(recipe, rate_hz, tuple(found))


def _means(wanted: str, name: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _network(recipe: Recipe) -> list[Parameter]:
    width, rate = recipe.member.width, recipe.training.learning_rate
    return [
        Parameter(
            "member.width",
            "How many channels the networks have, as a factor: half to one and a half times what was given.",
            Range(width / 2, min(16.0, 1.5 * width), log=True),
        ),
        _number(recipe, "member.dropout", "The share of activations dropped in training.", Range(0.0, 0.5)),
        Parameter(
            "training.learning_rate",
            "The peak of the learning rate: a quarter of what was given to four times it.",
            Range(rate / 4, 4 * rate, log=True),
        ),
    ]


def _augmentation(recipe: Recipe) -> list[Parameter]:
    number = _numbers_of(recipe)
    found = [
        number("training.gain", "Recordings are made larger or smaller by up to this factor.", Range(1.0, 2.0)),
        number("training.flip", "The share of recordings turned upside down.", Range(0.0, 0.5)),
        number("training.label_smoothing", "The share of the target spread over all classes.", Range(0.0, 0.2)),
    ]
    crop_s = recipe.training.crop_s
    if crop_s is not None:
        longest = min(recipe.input.window_s, 2 * crop_s)
        found.append(
            number("training.crop_s", "How long a stretch is trained on, in s.", Range(max(1.0, crop_s / 2), longest))
        )
    return found


def _hardening(recipe: Recipe) -> list[Parameter]:
    number, epsilon = _numbers_of(recipe), recipe.training.attack_epsilon
    if epsilon is None:
        return []
    return [
        number("training.attacked", "The share of every batch that is attacked by one step.", Range(0.1, 1.0)),
        number(
            "training.attack_epsilon",
            "How far at most that step goes, in the units of the input: a third of what was given to twice it.",
            Range(epsilon / 3, 2 * epsilon, log=True),
        ),
    ]


def _decorrelation(recipe: Recipe) -> list[Parameter]:
    number, fittable = _numbers_of(recipe), recipe.training.batch_size - 2  # as `fewest_records` wants it
    most = max(1, min(_LARGEST_FIT, fittable))
    return [
        number("decorrelation.weight", "λ, how much likeness costs.", Range(0.005, 0.5, log=True)),
        number(
            "decorrelation.projected",
            "r, from how many random directions likeness is predicted; batches must be larger by two.",
            Range(min(4, most), most, log=True, whole=True),
        ),
        Parameter("decorrelation.whiten", "Whether directions of equal variance are predicted.", Choice((False, True))),
    ]


def _partition(recipe: Recipe, rate_hz: float) -> list[Parameter]:
    own = recipe.partition.bands != PartitionRecipe().bands
    highest = min(40.0, 0.8 * rate_hz / 2)
    edges = Range(min(3.0, highest / 2), highest, log=True)
    cut = (BANDS, CUT)
    return [
        Parameter(
            BANDS,
            "What members hear: the paper's rings, what is below and what is above a cut, or what was given.",
            Choice((GIVEN, RINGS, CUT) if own else (RINGS, CUT)),
        ),
        Parameter(BELOW, "Up to where the member below the cut hears, in Hz.", edges, cut),
        Parameter(ABOVE, "From where the member above it hears, in Hz; under the other: they overlap.", edges, cut),
        Parameter(
            FIRST, "Whether the first member hears all, or what is below the cut.", Choice(("all", "below")), cut
        ),
    ]


def _numbers_of(recipe: Recipe) -> Callable[[str, str, Range], Parameter]:
    return lambda name, about, kind: _number(recipe, name, about, kind)


def _number(recipe: Recipe, name: str, about: str, kind: Range) -> Parameter:
    table, key = name.split(".")
    return Parameter(name, about, kind.holding(getattr(getattr(recipe, table), key)))


def _bands(space: Space, values: Mapping[str, Value]) -> tuple[Bands, ...]:
    layout = values[BANDS]
    if layout != CUT:
        return space.given.partition.bands if layout == GIVEN else PartitionRecipe().bands
    below: Bands = ((0.0, float(values[BELOW])),)
    above: Bands = ((float(values[ABOVE]), space.rate_hz / 2),)
    return ("all", below, above) if values[FIRST] == "all" else (below, above, below)


def _band_values(space: Space, recipe: Recipe) -> Values:
    """What `_bands` made these bands from."""
    bands = recipe.partition.bands
    if bands == PartitionRecipe().bands:
        return {BANDS: RINGS}
    if bands == space.given.partition.bands:
        return {BANDS: GIVEN}
    first = "all" if bands[0] == "all" else "below"
    below, above = bands[1:3] if first == "all" else bands[:2]
    return {BANDS: CUT, BELOW: float(below[0][1]), ABOVE: float(above[0][0]), FIRST: first}
