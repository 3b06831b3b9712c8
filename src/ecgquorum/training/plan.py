"""What to train: a recipe with its network and its strategy looked up and checked."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import ValidationError
from torch import Tensor, nn

from ecgquorum._internal.seeds import derive_seed
from ecgquorum.cohorts import Cohort
from ecgquorum.errors import EcgQuorumError, MemberError, RecipeError, TrainingError
from ecgquorum.members import MEMBERS, MemberFactory, build_member, check_options, count_features, norm_layers
from ecgquorum.members.registry import SIMPLE_TYPES, default_options
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import Recipe
from ecgquorum.recipes.error_messages import explain_errors
from ecgquorum.training.batches import n_batches
from ecgquorum.training.phase import BasePhase, Phase
from ecgquorum.training.strategies import RunFacts, Strategy, parse_strategy


@dataclass(frozen=True)
class TrainingPlan:
    """All that determines a training run, except its data.

    recipe:   as data, every default written out
    member:   the class of the networks, or a function that builds one
    strategy: the strategy object that `recipe.strategy` names
    """

    recipe: Recipe
    member: MemberFactory
    strategy: Strategy

    def input_spec(self, cohort: Cohort) -> InputSpec:
        """Return the input of the members for a cohort."""
        return InputSpec(cohort.leads, cohort.rate_hz, self.recipe.input.scaling, self.recipe.input.window_s)

    def build_member(self, cohort: Cohort, index: int) -> nn.Module:
        """Build a member with its initial weights, its input transformed by the strategy."""
        network = build_member(
            self.member,
            n_leads=len(cohort.leads),
            n_classes=len(cohort.classes),
            rate_hz=cohort.rate_hz,
            index=index,
            seed=derive_seed(self.recipe.seed, "member", index, "weights"),
            options={} if isinstance(self.member, partial) else self.recipe.member.options,
        )
        return self.strategy.transform_input(network, index, cohort.rate_hz)

    def phases(self) -> list[Phase]:
        """Return new phases of the run: `base`, then those that the strategy adds."""
        phases = [BasePhase(self.recipe.training, self.strategy), *self.strategy.after_training()]
        names = [phase.name for phase in phases]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise TrainingError(f"strategy {self.strategy.name}: two phases are called {twice!r}; rename one of them")
        return phases

    def prepare(self, cohort: Cohort) -> "TrainingPlan":
        """Raise an error if the cohort cannot be trained on; return the plan with defaults that depend on it."""
        recipe = self.recipe
        leads = recipe.input.leads
        if leads is not None and leads != len(cohort.leads):
            raise TrainingError(
                f"recipe {recipe.name} is for {leads} leads, but the cohort {cohort.path} has {len(cohort.leads)} "
                f"({', '.join(cohort.leads)}); choose another recipe, or set input.leads"
            )
        if n_batches(cohort, recipe.training) == 0 or len(cohort.part("tune")) == 0:
            raise TrainingError(
                f"{cohort.path}: too few recordings: expected at least 2 to train on and 1 to tune on, found "
                f"{len(cohort.part('train'))} and {len(cohort.part('tune'))}"
            )
        members = [self.build_member(cohort, index) for index in range(recipe.members)]
        facts = RunFacts(
            n_members=recipe.members,
            n_leads=len(cohort.leads),
            n_classes=len(cohort.classes),
            n_features=_count_features(members[0], cohort.batch([0], self.input_spec(cohort)).signal),
            n_norm_layers=len(norm_layers(members[0])),
            rate_hz=cohort.rate_hz,
            scaling=recipe.input.scaling,
            batch_size=recipe.training.batch_size,
        )
        strategy = self.strategy.prepare(facts)
        return replace(self, strategy=strategy, recipe=_with_parameters(recipe, strategy))


def resolve_recipe(recipe: Recipe) -> TrainingPlan:
    """Look up a recipe's network and strategy, and check their parameters; raise a RecipeError that names the key."""
    where = f"recipe {recipe.name}"
    kind, options = recipe.member.kind, recipe.member.options
    try:
        factory = MEMBERS.get(kind)
        check_options(factory, options)
        strategy = parse_strategy(recipe.strategy, recipe.strategies)
    except EcgQuorumError as error:
        raise RecipeError(f"{where}: {error}") from error
    member = {"kind": kind} | default_options(factory) | options
    return TrainingPlan(_with_parameters(recipe.change(member=member), strategy), factory, strategy)


def plan_from_objects(member: str | MemberFactory, strategy: Strategy, **fields: Any) -> TrainingPlan:
    """Make the plan of a run whose network and strategy are objects; fields are those of a recipe."""
    options: dict[str, Any] = {}
    if isinstance(member, partial):
        if member.args:
            raise MemberError("member: give functools.partial keyword arguments only")
        options = {key: value for key, value in member.keywords.items() if isinstance(value, SIMPLE_TYPES)}
    kind = (
        member if isinstance(member, str) else MEMBERS.name_of(member.func if isinstance(member, partial) else member)
    )
    factory = MEMBERS.get(member) if isinstance(member, str) else member
    fields["name"] = fields.get("name") or kind.rpartition(":")[2]
    described = {"kind": kind} | default_options(factory) | options
    try:
        recipe = Recipe.model_validate(fields | {"strategy": strategy.name, "member": described})
    except ValidationError as error:
        raise RecipeError(explain_errors(error, Recipe)) from error
    return TrainingPlan(_with_parameters(recipe, strategy), factory, strategy)


def _count_features(member: nn.Module, x: Tensor) -> int:
    try:
        return count_features(member, x)
    except MemberError:
        return 0


def _with_parameters(recipe: Recipe, strategy: Strategy) -> Recipe:
    """Return the recipe with the parameters of its strategy written out."""
    tables = {
        part.name: {key: value for key, value in part.parameters.items() if value is not None}
        for part in strategy.parts
    }
    return recipe.change(strategies=recipe.strategies | tables)
