"""The worst of several attacks on several targets, chosen for each recording."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ecgquorum.attacks.apgd import APGD, dlr_loss
from ecgquorum.attacks.attack import Attack, Model, Norm, keep_worse
from ecgquorum.attacks.pgd import PGD
from ecgquorum.attacks.square import Square


@final
@dataclass(frozen=True, kw_only=True)
class WorstCase(Attack):
    """Run every attack on every target; keep for each recording what lowers the model's margin most.

    attacks: with this epsilon and norm; empty: `standard_suite`
    targets: models to attack besides the model itself, such as an ensemble's members
    """

    default_target = "ensemble"
    attacks: tuple[Attack, ...] = ()
    targets: tuple[Model, ...] = ()

    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Run all attacks; the unchanged recording is a candidate too."""
        margin = dlr_loss(model, y)
        kept = x
        with torch.no_grad():
            kept_loss = margin(kept)
        for target in (model, *self.targets):
            for attack in self.attacks or standard_suite(self.epsilon, self.norm):
                found = attack(target, x, y, valid, generator=generator)
                with torch.no_grad():
                    kept, kept_loss = keep_worse(kept, kept_loss, found, margin(found))
        return kept


def standard_suite(epsilon: float | Tensor, norm: Norm = "linf") -> Sequence[Attack]:
    """Return gradient attacks with two losses and restarts and, where it supports the norm, the Square attack."""
    by_gradient = (
        PGD(epsilon, norm=norm, random_start=True, restarts=2, best=True),
        APGD(epsilon, norm=norm),
        APGD(epsilon, norm=norm, objective="dlr"),
    )
    return (*by_gradient, Square(epsilon)) if norm in Square.norms else by_gradient
