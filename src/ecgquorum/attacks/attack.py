"""What every attack has in common: bounds, padding, and a model that is left as it was found."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, final

import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.cohorts import Batch
from ecgquorum.errors import AttackError
from ecgquorum.members import frozen

Classifier = Callable[[Tensor], Tensor]
"""(batch, lead, time) -> logits or log probabilities (batch, class): a member, an ensemble or anybody's model."""

Norm = Literal["linf", "l2"]
Loss = Callable[[Tensor], Tensor]
"""(batch, lead, time) -> (batch,), to be increased."""


@dataclass(frozen=True)
class Attack(ABC):
    """A way to change recordings by at most `epsilon` (in the units of the model's input) so that a model errs.

    epsilon: one bound, or one for each recording of the batch
    """

    epsilon: float | Tensor
    norm: Norm = field(default="linf", kw_only=True)

    norms: ClassVar[tuple[Norm, ...]] = ("linf", "l2")
    """The norms that the attack knows."""

    def __post_init__(self) -> None:
        if self.norm not in self.norms:
            raise AttackError(
                f"{type(self).__name__}: expected the norm {' or '.join(self.norms)}, found {self.norm!r}"
            )
        if not (torch.as_tensor(self.epsilon) >= 0).all():
            raise AttackError(f"{type(self).__name__}: expected an epsilon of 0 or more, found {self.epsilon}")

    @final
    def __call__(self, classifier: Classifier, batch: Batch, *, generator: torch.Generator | None = None) -> Batch:
        """The batch, attacked: inside epsilon, padding still zero, the model as it was.

        generator: where the attack's randomness comes from; the same one gives the same result
        """
        with frozen(classifier):
            attacked = self.perturb(classifier, batch, generator or torch.Generator().manual_seed(0)).detach()
        change = projected((attacked - batch.signal) * batch.valid, self.bound(batch), self.norm)
        return batch._replace(signal=batch.signal + change)

    @abstractmethod
    def perturb(self, classifier: Classifier, batch: Batch, generator: torch.Generator) -> Tensor:
        """The attacked signal; the only thing that an attack's author writes."""

    def bound(self, batch: Batch) -> Tensor:
        """(batch, 1, 1): epsilon for each recording."""
        epsilon = torch.as_tensor(self.epsilon, dtype=batch.signal.dtype, device=batch.signal.device)
        return epsilon.expand(len(batch.signal))[:, None, None]


def cross_entropy(classifier: Classifier, label: Tensor) -> Loss:
    """The loss that most attacks increase."""

    def loss(x: Tensor) -> Tensor:
        return F.cross_entropy(classifier(x), label, reduction="none")

    return loss


def input_gradient(loss: Loss, x: Tensor) -> tuple[Tensor, Tensor]:
    """Each recording's loss (batch,), and its gradient with respect to x."""
    x = x.detach().requires_grad_()
    values = loss(x)
    if not values.requires_grad:
        raise AttackError("expected a classifier that can be differentiated, found none; attack it with Square instead")
    (gradient,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), gradient


def steepest(gradient: Tensor, norm: Norm) -> Tensor:
    """The direction of steepest ascent of length 1 in the norm."""
    if norm == "linf":
        return gradient.sign()
    return gradient / gradient.square().sum(dim=(1, 2), keepdim=True).sqrt().clamp_min(1e-30)


def projected(change: Tensor, bound: Tensor, norm: Norm) -> Tensor:
    """The nearest change whose norm is at most the bound."""
    if norm == "linf":
        return torch.minimum(torch.maximum(change, -bound), bound)
    length = change.square().sum(dim=(1, 2), keepdim=True).sqrt()
    return change * (bound / length.clamp_min(1e-30)).clamp_max(1.0)


def pgd_steps(
    loss: Loss,
    batch: Batch,
    bound: Tensor,
    *,
    start: Tensor | None = None,
    norm: Norm = "linf",
    step: float = 0.1,
    n_steps: int,
    best: bool = False,
) -> Tensor:
    """The signal after steps of `step` · bound along the steepest ascent of the loss.

    start: the change to begin with; absent: none
    best:  for each recording the iterate with the highest loss instead of the last
    """
    change = torch.zeros_like(batch.signal) if start is None else start
    kept, kept_loss = change, None
    for _ in range(n_steps):
        values, gradient = input_gradient(loss, batch.signal + change)
        if best:
            kept, kept_loss = keep_worse(kept, kept_loss, change, values)
        change = projected(change + step * bound * steepest(gradient * batch.valid, norm), bound, norm)
    if best:
        with torch.no_grad():
            change, _ = keep_worse(kept, kept_loss, change, loss(batch.signal + change))
    return batch.signal + change


def keep_worse(kept: Tensor, kept_loss: Tensor | None, found: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """For each recording what has the higher loss, and that loss; `kept_loss` None means that nothing is kept yet."""
    if kept_loss is None:
        return found, values
    better = values > kept_loss
    return torch.where(better[:, None, None], found, kept), torch.where(better, values, kept_loss)


def random_perturbation(batch: Batch, bound: Tensor, norm: Norm, generator: torch.Generator) -> Tensor:
    """A random change within the bound, on valid samples only."""
    shape = batch.signal.shape
    if norm == "linf":
        drawn = 2 * torch.rand(shape, generator=generator) - 1
        return drawn.to(batch.signal) * bound * batch.valid
    direction = steepest(torch.randn(shape, generator=generator).to(batch.signal) * batch.valid, "l2")
    return direction * bound * torch.rand(len(batch.signal), 1, 1, generator=generator).to(batch.signal)
