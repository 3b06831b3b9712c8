"""A strategy: penalise large logits, so that members are less confident."""

from dataclasses import dataclass

from torch import Tensor

from ecgquorum.strategies import Step, Strategy


@dataclass(frozen=True)
class LogitPenalty(Strategy):
    """Add weight * mean(logits^2) to the loss of every member."""

    weight: float = 0.01

    def loss_terms(self, step: Step) -> Tensor:
        """Return the penalty of the batch."""
        return self.weight * step.logits.square().mean()
