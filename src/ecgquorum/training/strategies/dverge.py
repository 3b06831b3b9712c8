"""DVERGE: members are trained together on what the others can be made to mistake (Yang et al. 2020)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from ecgquorum.cohorts import Batch
from ecgquorum.errors import TrainingError
from ecgquorum.losses import distill_features
from ecgquorum.members import norm_layers
from ecgquorum.training.phase import Phase, PhaseContext
from ecgquorum.training.strategies.strategy import RunFacts, Strategy, check_numbers, default_epsilon
from ecgquorum.training.validation import Evaluation, Tally


@final
@dataclass(frozen=True)
class Dverge(Strategy):
    """After their training, train all members together, each on recordings distilled from the others.

    For a batch-norm layer l drawn for the batch and each member i, a source recording is changed within epsilon until
    member i responds to it at layer l as to an unrelated target; the other members learn the source's class from it.

    epsilon:           largest change of the source, in the units of the input; None: 10 for microvolts, 0.025 for unit
    steps:             of that change
    step:              length of each of them, as a share of epsilon
    different_classes: choose source and target of different classes
    """

    epsilon: float | None = None
    steps: int = 20
    step: float = 0.1
    epochs: int = 10
    learning_rate: float = 1e-3
    different_classes: bool = False

    def __post_init__(self) -> None:
        check_numbers(self, "epsilon", "learning_rate", above=0)
        check_numbers(self, "step", above=0, high=2)
        check_numbers(self, "steps", "epochs", low=1, whole=True)
        if not isinstance(self.different_classes, bool):
            raise TrainingError(
                f"strategy dverge: different_classes: expected true or false, found {self.different_classes!r}"
            )

    def prepare(self, run: RunFacts) -> Strategy:
        """Check that there are several members with batch-norm layers, and fill in epsilon."""
        if run.n_members < 2:
            raise TrainingError(f"strategy dverge needs at least 2 members, found {run.n_members}")
        if run.n_norm_layers == 0:
            raise TrainingError("strategy dverge compares outputs of batch-norm layers, but the members have none")
        return replace(self, epsilon=self.epsilon or default_epsilon(self, run))

    def describe(self, member: int) -> dict[str, Any] | None:  # noqa: ARG002 (a hook)
        """Members are first trained as without this strategy."""
        return None

    def after_training(self) -> Sequence[Phase]:
        """Return the phase in which all members are trained together."""
        return (DvergePhase(self),)


@final
class DvergePhase(Phase):
    """All members together, each on recordings distilled from the others; validated on such recordings."""

    def __init__(self, strategy: Dverge) -> None:
        super().__init__("dverge", strategy.epochs, strategy.learning_rate, joint=True, parameters=strategy.parameters)
        self._strategy = strategy
        self._sources: Iterator[tuple[Batch, np.ndarray]] = iter(())

    def begin_epoch(self, context: PhaseContext, epoch: int) -> None:
        """Draw a second, independent order of the recordings: the sources."""
        self._sources = context.batches(epoch, "source")

    def losses(self, context: PhaseContext, batch: Batch, indices: np.ndarray) -> Iterator[Tensor]:  # noqa: ARG002
        """Yield, for each member, the mean of its losses on what was distilled from each of the others."""
        source, source_indices = next(self._sources)
        if self._strategy.different_classes:
            order = choose_other_classes(source.label, batch.label, context.generator)
            source, source_indices = source.of(order), source_indices[order.numpy()]
        distilled = self._distill(context, source, batch, context.generator)
        for j in range(len(context.members)):
            for i in range(len(context.members)):
                if i != j:
                    step = context.step(j, source, source_indices, distilled[i])
                    yield context.loss(step) / (len(context.members) - 1)

    def validate(self, context: PhaseContext) -> Evaluation:
        """Evaluate members on tune recordings distilled from the others, with the same layers and targets each time."""
        generator = context.make_generator("judge")
        tally = Tally()
        for source in context.tune_batches():
            order = torch.randperm(len(source.label), generator=generator)
            distilled = self._distill(context, source, source.of(order), generator)
            for j, member in enumerate(context.members):
                for i, changed in enumerate(distilled):
                    if i != j:
                        tally.add(member, changed, len(source.label))
        return tally.result()

    def _distill(self, context: PhaseContext, source: Batch, target: Batch, generator: torch.Generator) -> list[Batch]:
        """Return this rank's rows of the source, changed for each member at the same layer."""
        layer = int(torch.randint(len(norm_layers(context.members[0])), (), generator=generator))
        source, target = context.own_rows(source), context.own_rows(target)
        with context.autocast():
            return [self._distill_from(member, source, target, layer) for member in context.members]

    def _distill_from(self, member: torch.nn.Module, source: Batch, target: Batch, layer: int) -> Batch:
        if self._strategy.epsilon is None:
            raise ValueError("epsilon is filled in by prepare")
        changed = distill_features(
            member,
            source.signal,
            target.signal,
            layer,
            epsilon=self._strategy.epsilon,
            valid=source.valid,
            n_steps=self._strategy.steps,
            step=self._strategy.step,
        )
        return source._replace(signal=changed)


def choose_other_classes(source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
    """Draw for each target a source of another class, if there is one; (batch,) numbers of sources.

    source, target: (batch,) classes
    """
    differs = (source[None] != target[:, None]).double()
    differs[differs.sum(dim=1) == 0] = 1.0
    return torch.multinomial(differs, 1, generator=generator)[:, 0]
