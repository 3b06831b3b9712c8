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

    share: of the window that the first segments cover
    """

    norms = ("linf",)
    n_queries: int = 200
    share: float = 0.3

    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Run the search; return the best change found."""
        bound, (n_records, n_leads, n_samples) = self.bound(x), x.shape
        loss = dlr_loss(model, y)
        with torch.no_grad():
            change = random_perturbation(x, valid, bound, "linf", generator).sign() * bound * valid
            best = loss(x + change)
            time = torch.arange(n_samples, device=x.device)
            for query in range(self.n_queries):
                width = max(1, round(self.share * n_samples * 0.5 ** (8 * query / self.n_queries)))
                start = torch.randint(max(1, n_samples - width + 1), (n_records, 1, 1), generator=generator)
                sign = 2 * torch.randint(2, (n_records, n_leads, 1), generator=generator) - 1
                start, sign = start.to(time.device), sign.to(x)
                inside = (time >= start) & (time < start + width)
                tried = torch.where(inside, sign * bound, change) * valid
                found = loss(x + tried)
                better = found > best
                change = torch.where(better[:, None, None], tried, change)
                best = torch.where(better, found, best)
        return x + change
