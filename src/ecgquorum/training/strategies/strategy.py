"""The base class of strategies, and their sums.

A strategy changes how the members of an ensemble are trained. It is a frozen dataclass whose fields are its parameters,
and overrides the hooks that it needs:

    prepare          check a run before anything is trained, and fill in defaults that depend on it
    transform_input  change a member when it is built, for example put a filter in front of it
    change_batch     change the recordings that a member is trained on
    loss_terms       add to the loss of a batch
    after_training   add further rounds of training
    check_members    examine the trained members, for the card

    @dataclass(frozen=True)
    class Confident(Strategy):
        weight: float = 0.1

        def loss_terms(self, step: Step) -> Tensor:
            return self.weight * step.logits.square().mean()

Strategies add up: `Decorrelation() + FourierPartition()`. The order does not matter.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from ecgquorum.errors import TrainingError
from ecgquorum.recipes.training import strategy_order

if TYPE_CHECKING:
    from ecgquorum.cohorts import Batch
    from ecgquorum.training.phase import Phase
    from ecgquorum.training.step import Step


@dataclass(frozen=True)
class RunFacts:
    """What is known about a run before it starts.

    n_features: of a member before its last layer; 0 where they cannot be read
    scaling:    of the input: "microvolt", "unit" or "none"
    """

    n_members: int
    n_leads: int
    n_classes: int
    n_features: int
    n_norm_layers: int
    rate_hz: float
    scaling: str
    batch_size: int


@dataclass(frozen=True)
class Strategy:
    """A way to train an ensemble; subclasses override hooks, all of which do nothing by default.

    uses_earlier_members: member k is trained after members 0 to k - 1, and `Step.earlier` holds their features
    """

    uses_earlier_members: ClassVar[bool] = False

    @property
    def uses_earlier_logits(self) -> bool:
        """Whether `Step.earlier_logits` is needed too, which costs a forward pass of every earlier member."""
        return False

    @property
    def name(self) -> str:
        """The strategy's registered name, or the import path of its class."""
        from ecgquorum.training.strategies import STRATEGIES  # which needs this module

        return STRATEGIES.name_of(type(self))

    @property
    def parts(self) -> tuple["Strategy", ...]:
        """The strategies that this one is a sum of."""
        return (self,)

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the dataclass fields."""
        return asdict(self)

    def __add__(self, other: "Strategy") -> "Strategy":
        if not isinstance(other, Strategy):
            return NotImplemented
        return sum_strategies([*self.parts, *other.parts])

    def prepare(self, run: RunFacts) -> "Strategy":  # noqa: ARG002 (a hook)
        """Raise a TrainingError if the run cannot use the strategy; return it with all defaults filled in."""
        return self

    def describe(self, member: int) -> dict[str, Any] | None:  # noqa: ARG002 (a hook)
        """Return everything that decides what this does to a member's training; None where it does nothing to it.

        Members of different runs with equal descriptions are trained once. By default the description is all
        parameters; override it where a strategy leaves some members alone, so that runs can share them.
        """
        return self.parameters

    def transform_input(self, member: nn.Module, index: int, rate_hz: float) -> nn.Module:  # noqa: ARG002 (a hook)
        """Return the member as it is to be trained and used; it may be wrapped in another module.

        member: freshly built, (batch, lead, time) -> (batch, class) · index: its number · rate_hz: of its input
        """
        return member

    def change_batch(self, step: "Step") -> "Batch":
        """Return the recordings to train on instead of `step.batch`; later phases make batches of their own."""
        return step.batch

    def loss_terms(self, step: "Step") -> Tensor | float:  # noqa: ARG002 (a hook)
        """Return what to add to the cross-entropy of `step.batch`, weight included; called in every phase."""
        return 0.0

    def after_training(self) -> Sequence["Phase"]:
        """Return new phases of training that follow when all members are trained."""
        return ()

    def check_members(self, members: Sequence[nn.Module], batch: "Batch") -> dict[str, Any]:  # noqa: ARG002 (a hook)
        """Return what the card says about the trained members, by what they do with some tune recordings.

        A text under the key "warning" is also shown when training ends.
        """
        return {}


@dataclass(frozen=True)
class StrategySum(Strategy):
    """Several strategies at once, in canonical order; made by `+`."""

    summands: tuple[Strategy, ...]

    @property
    def name(self) -> str:
        """The names of the summands, joined by "+"."""
        return "+".join(part.name for part in self.summands)

    @property
    def parts(self) -> tuple[Strategy, ...]:
        """The summands."""
        return self.summands

    def prepare(self, run: RunFacts) -> Strategy:
        """Prepare every summand."""
        return replace(self, summands=tuple(part.prepare(run) for part in self.summands))

    def describe(self, member: int) -> dict[str, Any] | None:
        """Return the descriptions of those summands that do something to the member, by name."""
        return {part.name: found for part in self.summands if (found := part.describe(member)) is not None}

    def transform_input(self, member: nn.Module, index: int, rate_hz: float) -> nn.Module:
        """Apply every summand's transformation."""
        for part in self.summands:
            member = part.transform_input(member, index, rate_hz)
        return member

    def change_batch(self, step: "Step") -> "Batch":
        """Apply every summand's change."""
        for part in self.summands:
            step = step.with_batch(part.change_batch(step))
        return step.batch

    def loss_terms(self, step: "Step") -> Tensor | float:
        """Add every summand's terms."""
        return sum((part.loss_terms(step) for part in self.summands), start=0.0)

    def after_training(self) -> Sequence["Phase"]:
        """Return every summand's phases."""
        return [phase for part in self.summands for phase in part.after_training()]


def sum_strategies(strategies: Sequence[Strategy]) -> Strategy:
    """Return the sum of strategies, the same one for every order."""
    from ecgquorum.training.strategies.baseline import Baseline  # which needs this module

    parts = sorted(
        (part for strategy in strategies for part in strategy.parts), key=lambda one: strategy_order(one.name)
    )
    names = [part.name for part in parts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise TrainingError(f"strategy {'+'.join(names)}: {twice} is there twice; leave one of them out")
    if len(parts) > 1:
        return StrategySum(tuple(parts))
    return parts[0] if parts else Baseline()


def check_numbers(
    strategy: Strategy,
    *names: str,
    above: float | None = None,
    low: float = 0,
    high: float = math.inf,
    whole: bool = False,
) -> None:
    """Raise a TrainingError for a parameter that is not a finite number within its limits; None is allowed.

    above: exclusive lower limit, instead of `low`
    """
    for name in names:
        value = getattr(strategy, name)
        is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if value is None or (
            is_number and math.isfinite(value) and low <= value <= high and (above is None or value > above)
        ):
            continue
        lower = f"at least {low:g}" if above is None else f"more than {above:g}"
        upper = "" if high == math.inf else f" and at most {high:g}"
        kind = "a whole number" if whole else "a number"
        raise TrainingError(f"strategy {strategy.name}: {name}: expected {kind} of {lower}{upper}, found {value!r}")


def default_epsilon(strategy: Strategy, run: RunFacts, defaults: dict[str, float] | None = None) -> float:
    """Return the bound of a strategy's attack for the input's scaling; by default the paper's."""
    defaults = {"microvolt": 10.0, "unit": 0.025} if defaults is None else defaults
    if run.scaling not in defaults:
        raise TrainingError(
            f"strategy {strategy.name}: epsilon has no default for inputs that are not scaled; give it in their units"
        )
    return defaults[run.scaling]
