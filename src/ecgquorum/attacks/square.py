"""Square attack along time: random search that needs no gradient (Andriushchenko et al. 2020)."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ecgquorum.attacks.apgd import dlr_loss
from ecgquorum.attacks.attack import Attack, Model, random_perturbation


@final
@dataclass(frozen=True, kw_only=True)
class Square(Attack):
    """Try segments of +-epsilon, ever shorter; keep those that lower the margin. l-infinity only.

    Segments lie within the valid samples of each recording.

    n_queries: forward passes of the model; 200 are a check, 5,000 an attack in its own right
    share:     of the valid samples that the first segments cover
    """

    norms = ("linf",)
    n_queries: int = 200
    share: float = 0.3

    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Run the search; return the best change found."""
        bound, (n_records, n_leads, _) = self.bound(x), x.shape
        loss = dlr_loss(model, y)
        with torch.no_grad():
            change = random_perturbation(x, valid, bound, "linf", generator).sign() * bound * valid
            best = loss(x + change)
            # segments are drawn among the valid samples alone, counted from 0: padding would waste queries
            is_valid = valid.expand_as(x).any(dim=1, keepdim=True)
            place = is_valid.long().cumsum(dim=2) - 1
            n_valid = is_valid.sum(dim=2, keepdim=True)
            for query in range(self.n_queries):
                width = (self.share * 0.5 ** (8 * query / self.n_queries) * n_valid).round().clamp(min=1)
                drawn = torch.rand((n_records, 1, 1), generator=generator, dtype=torch.float64)
                sign = 2 * torch.randint(2, (n_records, n_leads, 1), generator=generator) - 1
                start = (drawn.to(x.device) * (n_valid - width + 1).clamp(min=1)).floor()
                inside = (place >= start) & (place < start + width)
                tried = torch.where(inside, sign.to(x) * bound, change) * valid
                found = loss(x + tried)
                better = found > best
                change = torch.where(better[:, None, None], tried, change)
                best = torch.where(better, found, best)
        return x + change
