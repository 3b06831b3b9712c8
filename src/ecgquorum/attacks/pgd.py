"""Projected gradient descent on the cross-entropy (METHOD, section 7)."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ecgquorum.attacks.attack import Attack, Classifier, cross_entropy, keep_worse, pgd_steps, random_perturbation
from ecgquorum.cohorts import Batch


@final
@dataclass(frozen=True, kw_only=True)
class PGD(Attack):
    """x <- project(x + alpha · steepest grad L), from the recording itself, as the paper does.

    step:         alpha as a share of epsilon
    random_start: begin at a random change instead
    start:        begin at this change instead, (batch, lead, time)
    restarts:     how often to begin; each recording keeps its worst outcome
    best:         keep the iterate with the highest loss instead of the last
    """

    n_steps: int = 20
    step: float = 0.1
    random_start: bool = False
    start: Tensor | None = None
    restarts: int = 1
    best: bool = False

    def perturb(self, classifier: Classifier, batch: Batch, generator: torch.Generator) -> Tensor:
        """The last of the steps, or the best one."""
        loss, bound = cross_entropy(classifier, batch.label), self.bound(batch)
        kept, kept_loss = batch.signal, None
        for _ in range(self.restarts):
            start = random_perturbation(batch, bound, self.norm, generator) if self.random_start else self.start
            found = pgd_steps(
                loss, batch, bound, start=start, norm=self.norm, step=self.step, n_steps=self.n_steps, best=self.best
            )
            if self.restarts == 1:
                return found
            with torch.no_grad():
                kept, kept_loss = keep_worse(kept, kept_loss, found, loss(found))
        return kept
