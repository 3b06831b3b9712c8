"""Square attack: random search that needs answers only, no gradient (Andriushchenko et al. 2020), along time."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ecgquorum.attacks.apgd import dlr_loss
from ecgquorum.attacks.attack import Attack, Classifier, random_perturbation
from ecgquorum.cohorts import Batch


@final
@dataclass(frozen=True, kw_only=True)
class Square(Attack):
    """Stretches of +-epsilon, ever shorter, kept where they bring the margin down; l-infinity only.

    share: of the window that the first stretches cover
    """

    norms = ("linf",)
    n_queries: int = 200
    share: float = 0.3

    def perturb(self, classifier: Classifier, batch: Batch, generator: torch.Generator) -> Tensor:
        """The best change found."""
        bound, (n_records, n_leads, n_samples) = self.bound(batch), batch.signal.shape
        loss = dlr_loss(classifier, batch.label)
        with torch.no_grad():
            change = random_perturbation(batch, bound, "linf", generator).sign() * bound * batch.valid
            best = loss(batch.signal + change)
            time = torch.arange(n_samples, device=batch.signal.device)
            for query in range(self.n_queries):
                width = max(1, round(self.share * n_samples * 0.5 ** (8 * query / self.n_queries)))
                start = torch.randint(max(1, n_samples - width + 1), (n_records, 1, 1), generator=generator)
                sign = 2 * torch.randint(2, (n_records, n_leads, 1), generator=generator) - 1
                start, sign = start.to(time.device), sign.to(batch.signal)
                inside = (time >= start) & (time < start + width)
                tried = torch.where(inside, sign * bound, change) * batch.valid
                found = loss(batch.signal + tried)
                better = found > best
                change = torch.where(better[:, None, None], tried, change)
                best = torch.where(better, found, best)
        return batch.signal + change
