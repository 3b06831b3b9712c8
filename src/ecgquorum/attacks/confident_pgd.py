"""The attack of somebody who knows that doubtful recordings are read by people: be wrong, and look sure."""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.attacks.attack import Attack, pgd_steps
from ecgquorum.cohorts import Batch
from ecgquorum.errors import AttackError


@final
@dataclass(frozen=True, kw_only=True)
class ConfidentPGD(Attack):
    """PGD on an ensemble that raises the cross-entropy and lowers the mutual information of its members.

    weight: how much a nat of mutual information counts against a nat of cross-entropy
    """

    n_steps: int = 40
    step: float = 0.1
    weight: float = 4.0

    def perturb(self, classifier: Any, batch: Batch, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """The last of the steps; the classifier must give every member's log probabilities."""
        if not hasattr(classifier, "member_log_probs"):
            raise AttackError(
                "QuietPGD: expected an ensemble, with members that may disagree, found another classifier"
            )

        def loss(x: Tensor) -> Tensor:
            members = classifier.member_log_probs(x)
            mean = torch.logsumexp(members, dim=1) - torch.log(torch.tensor(float(members.shape[1])))
            information = _entropy(mean) - _entropy(members).mean(dim=1)
            return F.nll_loss(mean, batch.label, reduction="none") - self.weight * information

        return pgd_steps(loss, batch, self.bound(batch), norm=self.norm, step=self.step, n_steps=self.n_steps)


def _entropy(log_probs: Tensor) -> Tensor:
    return -(log_probs.exp() * log_probs).sum(dim=-1)
