"""Auto-PGD: no step size to choose, and a second loss (Croce & Hein, "Reliable evaluation of adversarial robustness
with an ensemble of diverse parameter-free attacks", 2020)."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from ecgquorum.attacks.attack import (
    Attack,
    Loss,
    Model,
    cross_entropy,
    input_gradient,
    per_recording,
    project,
    random_perturbation,
    steepest,
)

_MOMENTUM = 0.75
_PROGRESS = 0.75


@final
@dataclass(frozen=True, kw_only=True)
class APGD(Attack):
    """PGD with momentum; the step of each recording is halved when its loss no longer rises.

    objective: "ce", cross-entropy, or "dlr", the difference of logits ratio, which does not depend on their scale
    """

    n_steps: int = 50
    objective: Literal["ce", "dlr"] = "ce"

    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Run the steps; return the iterate with the highest loss."""
        loss = cross_entropy(model, y) if self.objective == "ce" else dlr_loss(model, y)
        bound = self.bound(x)
        change = project(random_perturbation(x, valid, bound, self.norm, generator), bound, self.norm)
        values, gradient = input_gradient(loss, x + change)
        best, best_loss, best_gradient = change, values, gradient
        before, size = change, 2 * bound
        marks = _checkpoints(self.n_steps)
        gained = torch.zeros_like(values)
        last_mark, last_size, last_best = 0, size, best_loss
        for number in range(self.n_steps):
            ahead = project(change + size * steepest(gradient * valid, self.norm), bound, self.norm)
            pull = _MOMENTUM if number else 1.0
            moved = project(change + pull * (ahead - change) + (1 - pull) * (change - before), bound, self.norm)
            before, change = change, moved
            found, gradient = input_gradient(loss, x + change)
            gained = gained + (found > values)
            values = found
            better = per_recording(found > best_loss, x)
            best, best_gradient = torch.where(better, change, best), torch.where(better, gradient, best_gradient)
            best_loss = torch.maximum(best_loss, found)
            if number + 1 in marks:
                stuck = gained < _PROGRESS * (number + 1 - last_mark)
                stuck |= (size == last_size).flatten() & (best_loss <= last_best)
                last_mark, last_size, last_best = number + 1, size, best_loss
                gained = torch.zeros_like(gained)
                chosen = per_recording(stuck, x)
                size = torch.where(chosen, size / 2, size)
                change, gradient = torch.where(chosen, best, change), torch.where(chosen, best_gradient, gradient)
                before = torch.where(chosen, best, before)
                values = torch.where(stuck, best_loss, values)
        return x + best


def dlr_loss(model: Model, y: Tensor) -> Loss:
    """-(z_y - max_{i != y} z_i) / (z_1st - z_3rd), logits in order; with two classes the plain difference."""

    def loss(x: Tensor) -> Tensor:
        logits = model(x)
        ordered = logits.sort(dim=1, descending=True).values
        own = logits.gather(1, y[:, None])[:, 0]
        other = torch.where(logits.argmax(dim=1) == y, ordered[:, 1], ordered[:, 0])
        if logits.shape[1] < 3:
            return other - own
        return (other - own) / (ordered[:, 0] - ordered[:, 2] + 1e-12)

    return loss


def _checkpoints(n_steps: int) -> set[int]:
    """Return the steps after which the step size is reconsidered: p_{j+1} = p_j + max(p_j - p_{j-1} - 0.03, 0.06)."""
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return {round(share * n_steps) for share in shares[1:] if round(share * n_steps) <= n_steps}
