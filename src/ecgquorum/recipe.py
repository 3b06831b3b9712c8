"""Recipes: a training run written down in TOML, read into frozen, typed models.

An unknown key is an error that names its nearest neighbour; every number has its range. `Recipe.toml()` writes the
recipe back with every default spelled out, so that a run's folder says all that was decided.
"""

import difflib
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ecgquorum.errors import RecipeError

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class InputRecipe(_Part):
    """What the network is given; leads and rate are those of the cohort.

    scaling:  "microvolt", or "unit": each lead of each record to -1..1
    window_s: shorter recordings are padded with zeros on both sides to this length, longer ones cut
    """

    scaling: Literal["microvolt", "unit"] = "microvolt"
    window_s: Positive = 60.0


class MemberRecipe(_Part):
    """The network of every member.

    kind:    "compact", a small residual network, or "dilated", the paper's 13-block dilated CNN
    width:   multiplies the number of channels
    dropout: share of activations dropped in training
    bands:   what each member hears: "all", "rings:even", "rings:odd" (the paper's two complementary filters) or a
             list of [low, high] in Hz; one entry for all members, or one for each
    """

    kind: Literal["compact", "dilated"] = "compact"
    width: Positive = 1.0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3
    bands: tuple["str | tuple[tuple[float, float], ...]", ...] = ("all",)


class TrainingRecipe(_Part):
    """How each member is trained.

    schedule:        "one-cycle" (up, then down to nothing) or "constant"
    crop_s:          train on a random stretch of this length of each recording; absent: on the whole window
    gain:            each recording is made larger or smaller by up to this factor, at random
    flip:            share of recordings turned upside down
    repeat:          how often a class is seen in an epoch, where not once
    label_smoothing: share of the target spread over all classes
    """

    epochs: Count = 20
    batch_size: Count = 64
    learning_rate: Positive = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 1e-2
    schedule: Literal["one-cycle", "constant"] = "one-cycle"
    crop_s: Positive | None = None
    gain: Annotated[float, Field(ge=1)] = 1.0
    flip: Share = 0.0
    repeat: dict[str, Count] = Field(default_factory=dict)
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Recipe(_Part):
    """A whole training run: `members` networks of one kind, trained one after another from one seed."""

    name: str
    seed: Annotated[int, Field(ge=0)] = 0
    members: Annotated[int, Field(ge=1, le=16)] = 3
    input: InputRecipe = InputRecipe()
    member: MemberRecipe = MemberRecipe()
    training: TrainingRecipe = TrainingRecipe()

    @model_validator(mode="after")
    def _bands_fit_members(self) -> Self:
        if len(self.member.bands) not in (1, self.members):
            raise ValueError(f"member.bands: expected 1 entry or {self.members}, found {len(self.member.bands)}")
        return self

    def bands_of(self, member: int) -> "str | tuple[tuple[float, float], ...]":
        """What the given member hears."""
        return self.member.bands[member if len(self.member.bands) > 1 else 0]

    def toml(self) -> str:
        """The recipe with every default spelled out."""
        return tomli_w.dumps(self.model_dump(exclude_none=True))


def load_recipe(path_or_name: str | Path) -> Recipe:
    """Read a recipe from a TOML file, or one that ships with ecgquorum by its name."""
    path = Path(path_or_name)
    if str(path_or_name) in recipe_names():
        text = (files("ecgquorum") / "recipes" / f"{path_or_name}.toml").read_text()
        return parse_recipe(text, f"recipe {path_or_name}")
    try:
        text = path.read_text()
    except OSError as error:
        raise RecipeError(
            f"{path}: expected a recipe file, or one of {', '.join(recipe_names())}; found: {error.strerror}"
        ) from error
    return parse_recipe(text, str(path))


def recipe_names() -> list[str]:
    """The names of the recipes that ship with ecgquorum."""
    entries = (files("ecgquorum") / "recipes").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))


def parse_recipe(text: str, where: str = "recipe") -> Recipe:
    """Read a recipe from TOML text; `where` names it in errors."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{where}: expected TOML, found: {error}") from error
    try:
        return Recipe.model_validate(_tuples(content))
    except ValidationError as error:
        raise RecipeError(f"{where}: " + "; ".join(_explained(problem) for problem in error.errors())) from error


def _tuples(value: Any) -> Any:
    """TOML arrays as tuples, which is what strict frozen models hold."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value


def _explained(problem: Any) -> str:
    place = [str(part) for part in problem["loc"]]
    name = ".".join(part for part in place if "[" not in part) or "recipe"
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], _keys_at(place[:-1]), n=1)
        return f"unknown key {name}" + (
            f"; did you mean {near[0]}?" if near else f"; known: {', '.join(_keys_at(place[:-1]))}"
        )
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    message = problem["msg"].removeprefix("Input should be ")
    return f"{name}: expected {message}, found {problem['input']!r}"


def _keys_at(place: list[str]) -> list[str]:
    """The keys that a recipe may have at this place."""
    model: Any = Recipe
    for part in place:
        field = model.model_fields.get(part)
        annotation = field.annotation if field else None
        candidates = get_args(annotation) if get_origin(annotation) else (annotation,)
        model = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if model is None:
            return []
    return list(model.model_fields)
