"""PGD that makes an ensemble wrong and confident, so that uncertainty does not reveal the attack."""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.attacks.attack import Attack, pgd_steps
from ecgquorum.errors import AttackError


@final
@dataclass(frozen=True, kw_only=True)
class ConfidentPGD(Attack):
    """PGD on an ensemble that raises the cross-entropy and lowers the mutual information of its members.

    weight: nats of cross-entropy that one nat of mutual information is worth
    """

    default_target = "ensemble"
    n_steps: int = 40
    step: float = 0.1
    weight: float = 4.0

    def perturb(self, model: Any, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Run the steps; the model must have `member_log_probs(x)`, (batch, member, class)."""
        if not hasattr(model, "member_log_probs"):
            raise AttackError(
                "ConfidentPGD lowers the disagreement of members: expected an Ensemble, found another model"
            )

        def loss(z: Tensor) -> Tensor:
            members = model.member_log_probs(z)
            mean = torch.logsumexp(members, dim=1) - torch.log(torch.tensor(float(members.shape[1])))
            information = _entropy(mean) - _entropy(members).mean(dim=1)
            return F.nll_loss(mean, y, reduction="none") - self.weight * information

        return pgd_steps(loss, x, valid, self.bound(x), norm=self.norm, step=self.step, n_steps=self.n_steps)


def _entropy(log_probs: Tensor) -> Tensor:
    return -(log_probs.exp() * log_probs).sum(dim=-1)
