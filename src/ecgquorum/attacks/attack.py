"""The base class of attacks, and the steps that gradient attacks share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, final

import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.errors import AttackError
from ecgquorum.members.kernels.freezing import freeze

Model = Callable[[Tensor], Tensor]
"""(batch, lead, time) -> logits or log probabilities (batch, class): a member, an ensemble or any PyTorch model."""

Norm = Literal["linf", "l2"]
Loss = Callable[[Tensor], Tensor]
"""(batch, lead, time) -> (batch,), to be increased."""


@dataclass(frozen=True)
class Attack(ABC):
    """Change recordings by at most `epsilon` so that a model errs: `x_adv = PGD(epsilon=50.0)(model, x, y)`.

    A new attack subclasses this as a frozen dataclass and writes `perturb`.

    epsilon: the largest change, in the units of the model's input; one number, or one for each recording of the batch
    """

    epsilon: float | Tensor
    norm: Norm = field(default="linf", kw_only=True)

    norms: ClassVar[tuple[Norm, ...]] = ("linf", "l2")
    """The norms that the attack supports."""
    default_target: ClassVar[str] = "member 0"
    """What an evaluation crafts the attack on: "member 0", as the paper does, or "ensemble"."""

    def __post_init__(self) -> None:
        if self.norm not in self.norms:
            raise AttackError(
                f"{type(self).__name__}: expected the norm {' or '.join(self.norms)}, found {self.norm!r}"
            )
        if not (torch.as_tensor(self.epsilon) >= 0).all():
            raise AttackError(f"{type(self).__name__}: expected an epsilon of 0 or more, found {self.epsilon}")

    @final
    def __call__(
        self,
        model: Model,
        x: Tensor,
        y: Tensor,
        valid: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return x within epsilon of itself, changed to raise the model's loss; the model is left as it was.

        model:     a classifier; its parameters get no gradient, its mode and batch-norm statistics do not change
        x:         (batch, channel, ...), usually (batch, lead, time)
        y:         (batch,), the true classes
        valid:     True where x may be changed, such as (batch, 1, time) that is False on padding; None: everywhere
        generator: source of randomness; the same one gives the same result; None: a generator with seed 0
        """
        if len(x) != len(y):
            raise AttackError(f"{type(self).__name__}: expected one class per recording, found {len(y)} for {len(x)}")
        valid = torch.ones_like(x[:1], dtype=torch.bool) if valid is None else valid.to(x.device, torch.bool)
        with freeze(model):
            moved = self.perturb(model, x, y, valid, generator or torch.Generator().manual_seed(0)).detach()
        return x + project((moved - x) * valid, self.bound(x), self.norm)

    @abstractmethod
    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Return the changed x; the only method that an attack must write.

        The model is in evaluation mode and its parameters need no gradient. What this returns is brought back inside
        epsilon and to the valid samples afterwards.
        """

    def bound(self, x: Tensor) -> Tensor:
        """Return epsilon for each recording, (batch, 1, ...) with as many dimensions as x."""
        epsilon = torch.as_tensor(self.epsilon, dtype=x.dtype, device=x.device)
        return per_recording(epsilon.expand(len(x)), x)


def per_recording(values: Tensor, x: Tensor) -> Tensor:
    """Reshape (batch,) so that it multiplies x, (batch, ...)."""
    return values.view(-1, *[1] * (x.ndim - 1))


def cross_entropy(model: Model, y: Tensor) -> Loss:
    """Return the loss that most attacks increase."""

    def loss(x: Tensor) -> Tensor:
        return F.cross_entropy(model(x), y, reduction="none")

    return loss


def input_gradient(loss: Loss, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return each recording's loss (batch,) and its gradient with respect to x."""
    x = x.detach().requires_grad_()
    values = loss(x)
    if not values.requires_grad:
        raise AttackError("this model cannot be differentiated; attack it with Square, which needs no gradient")
    (gradient,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), gradient


def steepest(gradient: Tensor, norm: Norm) -> Tensor:
    """Return the direction of steepest ascent with length 1 in the norm."""
    return gradient.sign() if norm == "linf" else gradient / _length(gradient)


def project(change: Tensor, bound: Tensor, norm: Norm) -> Tensor:
    """Return the nearest change whose norm is at most the bound."""
    if norm == "linf":
        return torch.minimum(torch.maximum(change, -bound), bound)
    return change * (bound / _length(change)).clamp_max(1.0)


def _length(x: Tensor) -> Tensor:
    """The l2 norm of each recording, shaped to divide x; never 0."""
    return per_recording(x.flatten(1).square().sum(dim=1).sqrt().clamp_min(1e-30), x)


def pgd_steps(
    loss: Loss,
    x: Tensor,
    valid: Tensor,
    bound: Tensor,
    *,
    start: Tensor | None = None,
    norm: Norm = "linf",
    step: float = 0.1,
    n_steps: int,
    best: bool = False,
) -> Tensor:
    """Return x after steps of `step` * bound along the steepest ascent of the loss.

    start: the change to begin with; None: no change
    best:  for each recording the iterate with the highest loss instead of the last
    """
    change = torch.zeros_like(x) if start is None else start
    kept, kept_loss = change, None
    for _ in range(n_steps):
        values, gradient = input_gradient(loss, x + change)
        if best:
            kept, kept_loss = keep_worse(kept, kept_loss, change, values)
        change = project(change + step * bound * steepest(gradient * valid, norm), bound, norm)
    if best:
        with torch.no_grad():
            change, _ = keep_worse(kept, kept_loss, change, loss(x + change))
    return x + change


def keep_worse(kept: Tensor, kept_loss: Tensor | None, found: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for each recording, the candidate with the higher loss, and that loss; `kept_loss` None: nothing kept."""
    if kept_loss is None:
        return found, values
    better = values > kept_loss
    return torch.where(per_recording(better, kept), found, kept), torch.where(better, values, kept_loss)


def random_perturbation(x: Tensor, valid: Tensor, bound: Tensor, norm: Norm, generator: torch.Generator) -> Tensor:
    """Draw a random change within the bound, on valid samples only."""
    if norm == "linf":
        drawn = 2 * torch.rand(x.shape, generator=generator) - 1
        return drawn.to(x) * bound * valid
    direction = steepest(torch.randn(x.shape, generator=generator).to(x) * valid, "l2")
    return direction * bound * per_recording(torch.rand(len(x), generator=generator).to(x), x)
