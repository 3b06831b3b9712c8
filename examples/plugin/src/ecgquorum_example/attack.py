"""An attack: a slow sine of the frequency and phase, of a few that are tried, that raises the loss most."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.attacks import Attack, Model


@dataclass(frozen=True, kw_only=True)
class BaselineWander(Attack):
    """Add a sine of amplitude epsilon; needs no gradient.

    n_tries: how many sines are drawn
    """

    norms = ("linf",)
    n_tries: int = 8

    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Return each recording with the worst of the sines."""
        time = torch.linspace(0, 1, x.shape[-1], device=x.device)
        worst, worst_loss = x, F.cross_entropy(model(x), y, reduction="none")
        for _ in range(self.n_tries):
            cycles, phase = (1 + 9 * torch.rand(2, generator=generator)).tolist()
            moved = x + self.bound(x) * torch.sin(2 * math.pi * cycles * time + phase) * valid
            loss = F.cross_entropy(model(moved), y, reduction="none")
            better = loss > worst_loss
            worst = torch.where(better[:, None, None], moved, worst)
            worst_loss = torch.where(better, loss, worst_loss)
        return worst
