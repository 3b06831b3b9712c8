"""Gradient alignment (GAL): members whose losses rise in different directions (Kariyappa & Qureshi 2019)."""

import time
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from ecgquorum.losses import gradient_alignment, input_gradients
from ecgquorum.members import evaluation_mode, freeze
from ecgquorum.training.step import Step
from ecgquorum.training.strategies.strategy import Strategy, check_numbers


@final
@dataclass(frozen=True)
class GradientAlignment(Strategy):
    """Penalise input gradients that point the same way as an earlier member's: adds weight * L to the loss.

    L is `losses.gradient_alignment` of the gradients of the cross-entropy by the recordings, on a share of each batch,
    all members in evaluation mode: dropout would make any two gradients differ. Padding does not count. The gradient of
    L needs a second backward pass through the member in training, so each of its layers has to be twice differentiable.

    weight: lambda
    share:  of every batch, at least one recording: the last ones, which `harden` attacks last
    """

    uses_earlier_members: ClassVar[bool] = True

    weight: float = 0.5
    share: float = 0.25

    def __post_init__(self) -> None:
        check_numbers(self, "weight")
        check_numbers(self, "share", above=0, high=1)

    @property
    def uses_earlier_logits(self) -> bool:
        """The earlier members themselves are needed, not stored features."""
        return True

    def describe(self, member: int) -> dict[str, Any] | None:
        """The first member has no earlier one, and is trained as without this strategy."""
        return self.parameters if member > 0 else None

    def loss_terms(self, step: Step) -> Tensor | float:
        """Return weight * L of the last recordings of the batch against the earlier members."""
        if not step.earlier_members:
            if step.earlier:
                raise ValueError("gradients need the earlier members, not their stored features")
            return 0.0
        started = time.perf_counter()
        n_compared = max(1, round(self.share * step.n_records))
        batch = step.batch.of(step.rows >= step.n_records - n_compared)
        n_own = len(batch.label)
        own = torch.zeros((), dtype=torch.float64, device=batch.signal.device)
        if n_own:
            earlier = []
            for member in step.earlier_members:
                with freeze(member):
                    earlier.append(input_gradients(member, batch.signal, batch.label, batch.valid))
            with evaluation_mode(step.member):
                mine = input_gradients(step.member, batch.signal, batch.label, batch.valid, create_graph=True)
            own = gradient_alignment(mine, earlier) * (n_own / n_compared)
        step.stats.add_value("alignment", step.share.stack(own.detach().double()).sum().item())
        step.stats.add_to_sum("alignment_seconds", time.perf_counter() - started)
        # the loss of a process counts by its share of the batch, this term by its share of the compared recordings
        return self.weight * own / step.share.weight
