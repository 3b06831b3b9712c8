"""A study: a training recipe, the strategies to compare, and how they are evaluated."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from ecgquorum.errors import RecipeError
from ecgquorum.recipes.error_messages import explain_errors
from ecgquorum.recipes.training import Count, Positive, Recipe, RecipePart, join_strategies, strategy_names

WHOLE = "ensemble"
WHOLE_ONLY = ("confident", "worst")
"""Attacks on the whole ensemble only."""

NATURAL = "natural"
RESERVED = (NATURAL, "worst of all", "worst of the shared attacks", "masking", "all corruptions")
"""Names in tables for conditions that are not attacks."""

EPSILONS = {
    "microvolt": (10.0, 50.0, 75.0, 100.0),
    "unit": (0.025, 0.05, 0.15, 0.175),
    "none": (0.025, 0.05, 0.15, 0.175),
}
"""The paper's attack strengths, in the units of the input."""


PAPER_STRATEGIES = ("baseline", "dec", "part", "dec+part", "adv", "dverge", "dec+adv")


class AttackRecipe(RecipePart):
    """One attack of an evaluation, at every strength.

    kind:     "pgd", "sap", "apgd", "square", "confident", "worst" (several attacks on every member and the ensemble),
              the name of another package's attack, or "package.module:Name"
    target:   the model that is attacked: "member 0", as in the paper, another member, or "ensemble"
    name:     its name in tables; its kind by default
    epsilons: its strengths, where not the evaluation's
    records:  attack at most so many recordings, drawn at random; absent: all
    options:  of the attack, such as { restarts = 5, random_start = true }
    """

    kind: str
    target: str = "member 0"
    name: str = ""
    epsilons: tuple[Positive, ...] | None = None
    records: Count | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _target_exists(self) -> Self:
        if self.kind == "quiet":
            raise ValueError('evaluation.attacks: the attack "quiet" is now called "confident"')
        if self.target != WHOLE and not re.fullmatch(r"member \d+", self.target):
            raise ValueError(f'evaluation.attacks: expected the target "member 0" or "{WHOLE}", found {self.target!r}')
        if self.kind in WHOLE_ONLY and self.target != WHOLE:
            raise ValueError(f'evaluation.attacks: {self.kind}: expected the target "{WHOLE}", found {self.target!r}')
        if self.name in RESERVED or self.name.startswith("mixed"):
            raise ValueError(f"evaluation.attacks: expected another name than {self.name!r}, which is taken")
        if not self.name:
            object.__setattr__(self, "name", self.kind)
        return self

    @property
    def member(self) -> int | None:
        """Index of the member that is attacked; None for the ensemble."""
        return None if self.target == WHOLE else int(self.target.removeprefix("member "))


PAPER_ATTACKS = (AttackRecipe(kind="pgd"), AttackRecipe(kind="sap"))
"""The attacks of the paper's tables."""

USUAL_ATTACKS = (
    *PAPER_ATTACKS,
    AttackRecipe(kind="pgd", target=WHOLE, records=100),
    AttackRecipe(kind="confident", target=WHOLE, records=100),
)


class EvaluationRecipe(RecipePart):
    """How ensembles are evaluated.

    part:            of the cohort: "test", or "tune" while choices are still to be made
    epsilons:        strengths of the attacks, in the units of the input; absent: the paper's for the input's scaling
    attacks:         the paper's PGD and SAP on member 0, then PGD and a confident attack on the ensemble, by default
    normalise:       the mutual information to uncertainty by its range: "training": minimum to maximum on the train
                     part; "authors": minimum to maximum on the natural evaluated recordings, as for the paper's
                     tables; "robust": 0 to the 99.9 % quantile on the train part
    masking_records: number of recordings for the checks for gradient masking; 0: no checks
    seed:            for attacks with randomness, and for the choice of recordings
    corruptions:     names of corruptions, or "all" that apply to the cohort's leads; none by default
    severities:      of the corruptions, 1 to 5
    ood:             names of sets of recordings out of distribution, "unseen" or "all"; none by default
    shift_records:   corrupt at most so many recordings, drawn at random; absent: all
    reference:       the ensemble by whose errors corruption errors are divided; absent: the baseline
    """

    part: Literal["test", "tune"] = "test"
    epsilons: Annotated[tuple[Positive, ...], Field(min_length=1)] | None = None
    attacks: tuple[AttackRecipe, ...] = USUAL_ATTACKS
    normalise: Literal["training", "authors", "robust"] = "training"
    masking_records: Annotated[int, Field(ge=0)] = 32
    seed: Annotated[int, Field(ge=0)] = 0
    corruptions: tuple[str, ...] = ()
    severities: Annotated[tuple[Annotated[int, Field(ge=1, le=5)], ...], Field(min_length=1)] = (1, 2, 3, 4, 5)
    ood: tuple[str, ...] = ()
    shift_records: Count | None = None
    reference: str = ""

    @field_validator("corruptions", "ood", mode="before")
    @classmethod
    def _one_name_is_a_list(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    def change(
        self,
        *,
        attacks: tuple[str, ...] | None = None,
        epsilons: tuple[float, ...] | None = None,
        records: int | None = None,
        **others: Any,
    ) -> "EvaluationRecipe":
        """Return the recipe with other values where one is given; attacks as KIND or KIND@TARGET.

        records: of attacks and corruptions alike · others: fields of the recipe; None leaves one as it is
        """
        fields = self.model_dump() | {name: value for name, value in others.items() if value is not None}
        if attacks is not None:
            fields["attacks"] = tuple(_parse_attack(text) for text in attacks)
        if records is not None:
            fields["attacks"] = tuple(attack | {"records": records} for attack in fields["attacks"])
            fields["shift_records"] = records
        if epsilons is not None:
            fields["epsilons"] = epsilons
            fields["attacks"] = tuple(attack | {"epsilons": None} for attack in fields["attacks"])
        try:
            return EvaluationRecipe.model_validate(fields)
        except ValidationError as error:
            raise RecipeError(explain_errors(error, EvaluationRecipe)) from error

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [(attack.name, attack.target) for attack in self.attacks]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"evaluation.attacks: {twice[0]} on {twice[1]} is there twice; give one another name")
        return self


def _parse_attack(text: str) -> dict[str, Any]:
    kind, _, target = text.partition("@")
    if not target:
        target = WHOLE if kind in WHOLE_ONLY else "0"
    return {"kind": kind, "target": WHOLE if target == WHOLE else f"member {target}"}


class CohortRecipe(RecipePart):
    """The source of a study's cohort, where no cohort is given.

    source:                 as for `ecgquorum cohort build`
    records, seconds, seed: of a simulated source
    """

    source: str
    records: Count = 1000
    seconds: Annotated[float, Field(ge=1)] = 30.0
    seed: Annotated[int, Field(ge=0)] = 0


class FurtherRuns(RecipePart):
    """Further runs of strategies: with other seeds, or other parameters.

    compare:    the strategies
    name:       added to a strategy's name in tables; absent: only seeds differ
    seeds:      of the runs; absent: the study's seed
    strategies: name of a strategy -> its parameters, where not those of the study
    """

    compare: Annotated[tuple[str, ...], Field(min_length=1)]
    name: Annotated[str, Field(pattern=r"^[\w.-]*$")] = ""
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = ()
    strategies: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _differs(self) -> Self:
        if self.strategies and not self.name:
            raise ValueError("runs: other parameters need a name, which tables add to the strategy's")
        if not self.strategies and not self.seeds:
            raise ValueError("runs: expected seeds or strategies that differ from the study's, found neither")
        unused = self.strategies.keys() - {name for one in self.compare for name in strategy_names(one)}
        if unused:
            raise ValueError(f"runs: strategies.{min(unused)}: none of {', '.join(self.compare)} uses it; remove it")
        return self


class Study(Recipe):
    """A training recipe and what to compare: the strategies, on which recordings, under which attacks.

    compare: the strategies; absent: the paper's seven, without dverge where there is one member only
    runs:    further runs of strategies, with other seeds or parameters
    """

    compare: Annotated[tuple[str, ...], Field(min_length=1)] = PAPER_STRATEGIES
    runs: tuple[FurtherRuns, ...] = ()
    cohort: CohortRecipe | None = None
    evaluation: EvaluationRecipe = EvaluationRecipe()

    @field_validator("compare")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        strategies = tuple(join_strategies(strategy) for strategy in value)
        twice = next((strategy for strategy in strategies if strategies.count(strategy) > 1), None)
        if twice:
            raise ValueError(f"compare: expected each strategy once, found {twice} twice")
        return strategies

    @model_validator(mode="after")
    def _study_fits_together(self) -> Self:
        if "compare" not in self.model_fields_set and self.members < 2:
            object.__setattr__(self, "compare", tuple(s for s in PAPER_STRATEGIES if s != "dverge"))
        for attack in self.evaluation.attacks:
            if attack.member is not None and attack.member >= self.members:
                raise ValueError(f"evaluation.attacks: expected a member below {self.members}, found {attack.target}")
        folders = [run_folder(name) for name, _ in self._all_runs()]
        twice = next((folder for folder in folders if folders.count(folder) > 1), None)
        if twice:
            raise ValueError(f"runs: expected each run once, found {twice} twice; give one another name")
        if self.evaluation.epsilons is None:
            chosen = self.evaluation.model_copy(update={"epsilons": EPSILONS[self.input.scaling]})
            object.__setattr__(self, "evaluation", chosen)
        return self

    def with_strategies(self, strategies: tuple[str, ...]) -> "Study":
        """Return the same study of other strategies, without further runs."""
        try:
            return Study.model_validate(self.model_dump() | {"compare": strategies, "runs": ()})
        except ValidationError as error:
            raise RecipeError(explain_errors(error, Study)) from error

    def recipes(self) -> dict[str, Recipe]:
        """Return the recipe of every run by its name in tables: "dec", "dec seed 1", "dec NAME", "dec NAME seed 1"."""
        recipe = self.recipe
        return {
            name: recipe.change(**fields | {"strategies": _merge_tables(recipe.strategies, fields["strategies"])})
            for name, fields in self._all_runs()
        }

    def _all_runs(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of every run, and what differs from the study's recipe."""
        for strategy in self.compare:
            yield strategy, {"strategy": strategy, "strategies": {}}
        for runs in self.runs:
            for strategy in (join_strategies(strategy) for strategy in runs.compare):
                for seed in runs.seeds or (self.seed,):
                    suffix = f" seed {seed}" if seed != self.seed else ""
                    name = f"{strategy} {runs.name}".strip() + suffix
                    yield name, {"strategy": strategy, "seed": seed, "strategies": runs.strategies}

    @property
    def recipe(self) -> Recipe:
        """How to train, without what to compare."""
        beyond = Study.model_fields.keys() - Recipe.model_fields.keys()
        return Recipe.model_validate(self.model_dump(exclude=set(beyond)))


def run_folder(name: str) -> str:
    """Return the name of the folder of a run's bundle."""
    return name.replace(" ", "_")


def _merge_tables(
    tables: Mapping[str, dict[str, Any]], changes: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the parameters of strategies with other values of some."""
    return {name: tables.get(name, {}) | changes.get(name, {}) for name in (*tables, *(changes.keys() - tables.keys()))}
