"""Projected gradient descent on the cross-entropy (METHOD, section 7)."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ecgquorum.attacks.attack import (
    Attack,
    Classifier,
    Loss,
    cross_entropy,
    gradient_of,
    projected,
    random_change,
    steepest,
)
from ecgquorum.cohorts import Batch


@final
@dataclass(frozen=True, kw_only=True)
class PGD(Attack):
    """x <- project(x + alpha · steepest grad L), from the recording itself, as the paper does.

    step:         alpha as a share of epsilon
    random_start: begin at a random change instead
    restarts:     how often to begin; each recording keeps its worst outcome
    best:         keep the iterate with the highest loss instead of the last
    """

    n_steps: int = 20
    step: float = 0.1
    random_start: bool = False
    restarts: int = 1
    best: bool = False

    def perturb(self, classifier: Classifier, batch: Batch, generator: torch.Generator) -> Tensor:
        """The last of the steps, or the best one."""
        loss = cross_entropy(classifier, batch.label)
        kept, kept_loss = batch.signal, None
        for _ in range(self.restarts):
            change = torch.zeros_like(batch.signal)
            if self.random_start:
                change = random_change(batch, self.bound(batch), self.norm, generator)
            found, found_loss = self._climbed(loss, batch, change)
            if kept_loss is None:
                kept, kept_loss = found, found_loss
            else:
                better = found_loss > kept_loss
                kept = torch.where(better[:, None, None], found, kept)
                kept_loss = torch.where(better, found_loss, kept_loss)
        return kept

    def _climbed(self, loss: Loss, batch: Batch, change: Tensor) -> tuple[Tensor, Tensor]:
        """Where the steps from `change` end, or were best, and the loss there."""
        bound = self.bound(batch)
        best, best_loss = change, torch.full((len(batch.signal),), -torch.inf, device=change.device)
        for _ in range(self.n_steps):
            values, gradient = gradient_of(loss, batch.signal + change)
            best, best_loss = _better(best, best_loss, change, values)
            moved = change + self.step * bound * steepest(gradient * batch.valid, self.norm)
            change = projected(moved, bound, self.norm)
        if not self.best and self.restarts == 1:
            return batch.signal + change, best_loss
        with torch.no_grad():
            values = loss(batch.signal + change)
        if not self.best:
            return batch.signal + change, values
        best, best_loss = _better(best, best_loss, change, values)
        return batch.signal + best, best_loss


def _better(best: Tensor, best_loss: Tensor, change: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    improved = values > best_loss
    return torch.where(improved[:, None, None], change, best), torch.where(improved, values, best_loss)
