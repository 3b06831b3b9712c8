"""The worst of several attacks on several targets, for each recording by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ecgquorum.attacks.apgd import APGD, dlr_loss
from ecgquorum.attacks.attack import Attack, Classifier, Norm, keep_worse
from ecgquorum.attacks.pgd import PGD
from ecgquorum.attacks.square import Square
from ecgquorum.cohorts import Batch


@final
@dataclass(frozen=True, kw_only=True)
class WorstCase(Attack):
    """Runs every attack on every target, and keeps for each recording what lowers the classifier's margin most.

    attacks: what to run; their own epsilon and norm should be this one's
    targets: what to run them on besides the classifier itself, such as an ensemble's members
    """

    attacks: tuple[Attack, ...] = ()
    targets: tuple[Classifier, ...] = ()

    def perturb(self, classifier: Classifier, batch: Batch, generator: torch.Generator) -> Tensor:
        """The worst of all, the recording as it is among them."""
        margin = dlr_loss(classifier, batch.label)
        kept = batch.signal
        with torch.no_grad():
            kept_loss = margin(kept)
        for target in (classifier, *self.targets):
            for attack in self.attacks or standard_suite(self.epsilon, self.norm):
                found = attack(target, batch, generator=generator).signal
                with torch.no_grad():
                    kept, kept_loss = keep_worse(kept, kept_loss, found, margin(found))
        return kept


def standard_suite(epsilon: float | Tensor, norm: Norm = "linf") -> Sequence[Attack]:
    """Gradient attacks with two losses and restarts and, where it knows the norm, one that needs no gradient."""
    by_gradient = (
        PGD(epsilon, norm=norm, random_start=True, restarts=2, best=True),
        APGD(epsilon, norm=norm),
        APGD(epsilon, norm=norm, objective="dlr"),
    )
    return (*by_gradient, Square(epsilon)) if norm in Square.norms else by_gradient
