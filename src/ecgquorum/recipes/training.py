"""How an ensemble is trained, as frozen, typed models.

These models are data alone: reading one imports no strategy and no network. `training.resolve_recipe` looks both up
and checks their parameters.
"""

from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ecgquorum.errors import RecipeError
from ecgquorum.recipes.error_messages import explain_errors
from ecgquorum.recipes.old_keys import check_old_keys

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]

Bands = str | tuple[tuple[float, float], ...]
PAPER_BANDS: tuple[Bands, ...] = ("all", "rings:even", "rings:odd")
"""What the members of the paper's Fourier partition see."""

STRATEGY_ORDER = ("dec", "gal", "part", "adv", "dverge", "harden")
"""The built-in strategies in the order in which sums of them are written."""


def strategy_names(strategy: str) -> tuple[str, ...]:
    """Split a sum such as "part+dec" into its names, in canonical order; "baseline" adds nothing and is left out."""
    names = [name.strip() for name in strategy.split("+")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice or "" in names:
        found = f"{twice} twice" if twice else f"{strategy!r}"
        raise ValueError(f"strategy: expected baseline or a sum such as dec+part, found {found}")
    return tuple(sorted((name for name in names if name != "baseline"), key=strategy_order))


def join_strategies(strategy: str) -> str:
    """Return a sum of names in canonical order, "baseline" for nothing else."""
    return "+".join(strategy_names(strategy)) or "baseline"


def strategy_order(name: str) -> tuple[int, str]:
    """Return the sort key of a strategy in a sum: the built-in ones first, others by name."""
    return (STRATEGY_ORDER.index(name), "") if name in STRATEGY_ORDER else (len(STRATEGY_ORDER), name)


def without_hardening(strategy: str) -> str:
    """Return a sum of names without "harden", to compare it with the paper's strategies."""
    return "+".join(name for name in strategy_names(strategy) if name != "harden") or "baseline"


class RecipePart(BaseModel):
    """What all tables of a recipe have in common: frozen, strict, no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class InputRecipe(RecipePart):
    """What the network is given; names of leads and sampling rate are those of the cohort.

    scaling:  "microvolt"; "unit": each lead of each recording to -1..1; "none": samples as the cohort has them
    window_s: shorter recordings are padded with zeros on both sides to this length, longer ones cut
    leads:    number of leads that the cohort must have; absent: any
    """

    scaling: Literal["microvolt", "unit", "none"] = "microvolt"
    window_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    leads: Count | None = None


class MemberRecipe(RecipePart):
    """The network of every member.

    kind: a registered name such as "compact" or "dilated", or "package.module:Name"
    All other keys are keyword arguments of that class.
    """

    model_config = ConfigDict(extra="allow")

    kind: str = "compact"

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments for the network's class."""
        return dict(self.model_extra or {})


class TrainingRecipe(RecipePart):
    """How each member is trained.

    schedule:        "one-cycle" (up, then down to 0) or "constant"
    crop_s:          train on a random stretch of this length of each recording; absent: on the whole window
    gain:            each recording is scaled by a random factor of up to this, up or down
    stretch:         each recording is made longer or shorter by a random factor of up to this
    flip:            share of recordings turned upside down
    repeat:          how often a class is seen in an epoch, where not once
    label_smoothing: share of the target spread over all classes
    clip:            the gradient is scaled down to this norm where it is larger; absent: never
    ema:             decay of the moving average of the weights, which is validated, and kept at the end; 0: no average,
                     the epoch with the best accuracy on the tune part is kept
    refit_head:      in the end, fit the last layer again on the train part without repeats and augmentation
    precision:       "float32", or "bfloat16": activations in training are rounded to it, which is faster on processors
                     with AVX512-BF16 or AMX and slower on others; weights and validation stay float32
    """

    epochs: Count = 20
    batch_size: Annotated[int, Field(ge=2)] = 64
    learning_rate: Positive = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 1e-2
    schedule: Literal["one-cycle", "constant"] = "one-cycle"
    crop_s: Annotated[float, Field(ge=1)] | None = None
    gain: Annotated[float, Field(ge=1)] = 1.0
    stretch: Annotated[float, Field(ge=1, le=2)] = 1.0
    flip: Share = 0.0
    repeat: dict[str, Count] = Field(default_factory=dict)
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    clip: Positive | None = None
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0
    refit_head: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"

    @property
    def has_augmentation(self) -> bool:
        """Whether a recording looks different from one epoch to the next."""
        return self.crop_s is not None or self.gain > 1 or self.stretch > 1 or self.flip > 0


class Recipe(RecipePart):
    """A whole training run: `members` networks of one kind, trained from one seed.

    strategy:   "baseline", or a sum of names such as "dec+part+harden"; written in canonical order
    strategies: name of a strategy -> its parameters, where not its defaults
    hold_out:   a class whose recordings are left out of training and evaluation, to serve as one that is unseen
    risk:       fit the feature distance and the risk of the trained ensemble, if there are enough tune recordings
    """

    name: str
    seed: Annotated[int, Field(ge=0)] = 0
    members: Annotated[int, Field(ge=1, le=16)] = 3
    strategy: str = "baseline"
    hold_out: str | None = None
    risk: bool = True
    input: InputRecipe = InputRecipe()
    member: MemberRecipe = MemberRecipe()
    training: TrainingRecipe = TrainingRecipe()
    strategies: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _has_no_old_keys(cls, value: Any) -> Any:
        check_old_keys(value)
        return value

    @field_validator("strategy")
    @classmethod
    def _in_canonical_order(cls, value: str) -> str:
        return join_strategies(value)

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.training.crop_s is not None and self.training.crop_s > self.input.window_s:
            window_s, crop_s = self.input.window_s, self.training.crop_s
            raise ValueError(f"training.crop_s: expected at most input.window_s, {window_s:g}, found {crop_s:g}")
        return self

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the strategies that the recipe's strategy is a sum of; empty for "baseline"."""
        return strategy_names(self.strategy)

    def with_strategy(self, strategy: str) -> "Recipe":
        """Return the same recipe with another strategy."""
        return self.change(strategy=strategy)

    def change(self, **fields: Any) -> "Recipe":
        """Return the recipe with other values of these fields."""
        try:
            return Recipe.model_validate(self.model_dump() | fields)
        except ValidationError as error:
            raise RecipeError(explain_errors(error, Recipe)) from error

    def toml(self) -> str:
        """Write the recipe as TOML with the defaults of its tables; `resolve_recipe` adds those of strategies."""
        return tomli_w.dumps(self.model_dump(exclude_none=True))
