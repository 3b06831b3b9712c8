"""Projected gradient descent on the cross-entropy."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ecgquorum.attacks.attack import Attack, Model, cross_entropy, keep_worse, pgd_steps, random_perturbation


@final
@dataclass(frozen=True, kw_only=True)
class PGD(Attack):
    """x <- project(x + alpha * steepest grad L), starting from the recording itself, as the paper does.

    step:         alpha as a share of epsilon
    random_start: start from a random change instead
    start:        start from this change instead, (batch, lead, time)
    restarts:     number of starts; each recording keeps the result with the highest loss
    best:         keep the iterate with the highest loss instead of the last
    """

    n_steps: int = 20
    step: float = 0.1
    random_start: bool = False
    start: Tensor | None = None
    restarts: int = 1
    best: bool = False

    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Run the steps; return the last iterate, or the best one."""
        loss, bound = cross_entropy(model, y), self.bound(x)
        kept, kept_loss = x, None
        for _ in range(self.restarts):
            start = random_perturbation(x, valid, bound, self.norm, generator) if self.random_start else self.start
            found = pgd_steps(
                loss, x, valid, bound, start=start, norm=self.norm, step=self.step, n_steps=self.n_steps, best=self.best
            )
            if self.restarts == 1:
                return found
            with torch.no_grad():
                kept, kept_loss = keep_worse(kept, kept_loss, found, loss(found))
        return kept
