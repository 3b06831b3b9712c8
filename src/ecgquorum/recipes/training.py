"""How an ensemble is trained, as frozen, typed models; every number has its range."""

from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ecgquorum.errors import RecipeError
from ecgquorum.recipes.error_messages import explained

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Bands = str | tuple[tuple[float, float], ...]

BAND_WORDS = ("all", "rings:even", "rings:odd")
EPSILON = {"microvolt": 10.0, "unit": 0.025}
"""The paper's bound of attacks in training, in the units of the input."""

PARTS = ("dec", "part", "adv", "dverge")
"""What a strategy is a sum of."""


def strategy_parts(strategy: str) -> frozenset[str]:
    """The parts of a strategy such as "dec+part"; "baseline" has none."""
    if strategy == "baseline":
        return frozenset()
    parts = strategy.split("+")
    unknown = [part for part in parts if part not in PARTS]
    if unknown or len(set(parts)) != len(parts):
        found = f"{unknown[0]!r}" if unknown else "one of them twice"
        raise ValueError(f"strategy: expected baseline or a sum of {', '.join(PARTS)} such as dec+part, found {found}")
    return frozenset(parts)


def _is_band(pair: Any) -> bool:
    numbers = isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(edge, int | float) for edge in pair)
    return numbers and 0 <= pair[0] < pair[1]


class RecipePart(BaseModel):
    """What all tables of a recipe have in common: frozen, strict, no key that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class InputRecipe(RecipePart):
    """What the network is given; leads and rate are those of the cohort.

    scaling:  "microvolt", or "unit": each lead of each record to -1..1
    window_s: shorter recordings are padded with zeros on both sides to this length, longer ones cut
    """

    scaling: Literal["microvolt", "unit"] = "microvolt"
    window_s: Annotated[float, Field(ge=1, le=3600)] = 60.0


class MemberRecipe(RecipePart):
    """The network of every member.

    kind:    "compact", a small residual network, or "dilated", the paper's 13-block dilated CNN
    width:   multiplies the number of channels
    dropout: share of activations dropped in training
    """

    kind: Literal["compact", "dilated"] = "compact"
    width: Annotated[float, Field(gt=0, le=16)] = 1.0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3


class TrainingRecipe(RecipePart):
    """How each member is trained.

    schedule:        "one-cycle" (up, then down to nothing) or "constant"
    crop_s:          train on a random stretch of this length of each recording; absent: on the whole window
    gain:            each recording is made larger or smaller by up to this factor, at random
    flip:            share of recordings turned upside down
    repeat:          how often a class is seen in an epoch, where not once
    label_smoothing: share of the target spread over all classes
    attacked:        share of every batch that is changed by one step of an attack on the member as it is at that moment
    attack_epsilon:  how far at most, in the units of the input; drawn for each of these recordings
    """

    epochs: Count = 20
    batch_size: Annotated[int, Field(ge=2)] = 64
    learning_rate: Positive = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 1e-2
    schedule: Literal["one-cycle", "constant"] = "one-cycle"
    crop_s: Annotated[float, Field(ge=1)] | None = None
    gain: Annotated[float, Field(ge=1)] = 1.0
    flip: Share = 0.0
    repeat: dict[str, Count] = Field(default_factory=dict)
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    attacked: Share = 0.0
    attack_epsilon: Positive | None = None

    @model_validator(mode="after")
    def _attack_has_a_strength(self) -> Self:
        if (self.attacked > 0) != (self.attack_epsilon is not None):
            found = f"attacked = {self.attacked:g} and attack_epsilon = {self.attack_epsilon}"
            raise ValueError(f"training: expected attacked and attack_epsilon together or neither, found {found}")
        return self


class DecorrelationRecipe(RecipePart):
    """The part `dec`: a member pays for features that an earlier member's features predict.

    weight:     lambda, how much it pays
    projected:  r, how many random directions the prediction is made from
    projection: what is projected: "regressor" (the published code), "regressor-with-ones" (the paper's algorithm) or
                "regressand" (its displayed equation)
    whiten:     predict directions of equal variance, so that inflating one does not pay (beyond the paper)
    """

    weight: Annotated[float, Field(ge=0)] = 0.2
    projected: Count = 32
    projection: Literal["regressor", "regressor-with-ones", "regressand"] = "regressor"
    whiten: bool = False


class PartitionRecipe(RecipePart):
    """The part `part`: members hear different parts of the spectrum.

    bands: what the first member hears, then what the others do, in turn: "all", "rings:even", "rings:odd" (every
           second of ten rings of equal width, the paper's two complementary filters) or a list of [low, high] in Hz
    """

    bands: Annotated[tuple[Bands, ...], Field(min_length=1)] = BAND_WORDS

    @field_validator("bands", mode="before")
    @classmethod
    def _bands_are_bands(cls, value: Any) -> Any:
        for entry in value if isinstance(value, tuple) else ():
            pairs = entry if isinstance(entry, tuple) else ()
            if entry not in BAND_WORDS and not (pairs and all(_is_band(pair) for pair in pairs)):
                expected = f"{', '.join(BAND_WORDS)} or a list of [low, high] in Hz with 0 <= low < high"
                raise ValueError(f"partition.bands: expected {expected}, found {entry!r}")
        return value


class AdversarialRecipe(RecipePart):
    """The part `adv`: every trained member goes on, on recordings that are attacked as they come.

    epsilon: the attack's bound, in the units of the input; absent: 10 for microvolts, 0.025 for unit scaling
    steps:   of the attack (PGD)
    step:    how long each of them is, as a share of epsilon
    epochs:  the same for every member
    """

    epsilon: Positive | None = None
    steps: Count = 20
    step: Annotated[float, Field(gt=0, le=2)] = 0.1
    epochs: Count = 10
    learning_rate: Positive = 1e-3


class DvergeRecipe(RecipePart):
    """The part `dverge`: trained members go on together, each on what the others can be made to mistake.

    epsilon:           how far a recording may be changed to look like another; absent: as for `adv`
    steps:             of that change
    step:              how long each of them is, as a share of epsilon
    different_classes: whether the two must be of different classes
    """

    epsilon: Positive | None = None
    steps: Count = 10
    step: Annotated[float, Field(gt=0, le=2)] = 0.1
    epochs: Count = 10
    learning_rate: Positive = 1e-3
    different_classes: bool = False


class Recipe(RecipePart):
    """A whole training run: `members` networks of one kind, trained from one seed.

    strategy: "baseline", or a sum of parts: dec, part, adv, dverge
    """

    name: str
    seed: Annotated[int, Field(ge=0)] = 0
    members: Annotated[int, Field(ge=1, le=16)] = 3
    strategy: str = "baseline"
    input: InputRecipe = InputRecipe()
    member: MemberRecipe = MemberRecipe()
    training: TrainingRecipe = TrainingRecipe()
    decorrelation: DecorrelationRecipe = DecorrelationRecipe()
    partition: PartitionRecipe = PartitionRecipe()
    adversarial: AdversarialRecipe = AdversarialRecipe()
    dverge: DvergeRecipe = DvergeRecipe()

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.training.crop_s is not None and self.training.crop_s > self.input.window_s:
            window_s, crop_s = self.input.window_s, self.training.crop_s
            raise ValueError(f"training.crop_s: expected at most input.window_s, {window_s:g}, found {crop_s:g}")
        parts = strategy_parts(self.strategy)
        if "dverge" in parts and self.members < 2:
            raise ValueError("strategy: dverge needs at least 2 members, found 1")
        for name in ("adversarial", "dverge"):  # the bound is written out, so that a stored recipe says it
            part = getattr(self, name)
            if part.epsilon is None:
                epsilon = EPSILON[self.input.scaling]
                object.__setattr__(self, name, part.model_copy(update={"epsilon": epsilon}))
        return self

    @property
    def parts(self) -> frozenset[str]:
        """The strategy's parts."""
        return strategy_parts(self.strategy)

    def bands_of(self, member: int) -> Bands:
        """What the given member hears under the recipe's strategy."""
        if "part" not in self.parts:
            return "all"
        first, *others = self.partition.bands
        return first if member == 0 or not others else others[(member - 1) % len(others)]

    def with_strategy(self, strategy: str) -> "Recipe":
        """The same recipe under another strategy."""
        try:
            return Recipe.model_validate(self.model_dump() | {"strategy": strategy})
        except ValidationError as error:
            raise RecipeError(explained(error, Recipe)) from error

    def toml(self) -> str:
        """The recipe with every default spelled out."""
        return tomli_w.dumps(self.model_dump(exclude_none=True))
