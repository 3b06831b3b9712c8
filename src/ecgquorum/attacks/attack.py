"""What every attack has in common: bounds, padding, and a model that is left as it was found."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from ecgquorum.cohorts import Batch

Classifier = Callable[[Tensor], Tensor]
"""(batch, lead, time) -> logits or log probabilities (batch, class): a member, an ensemble or anybody's model."""


_STEP = 0.1


@contextmanager
def frozen(*models: Any) -> Iterator[None]:
    """Evaluation mode and no gradients for parameters while the block runs; everything is put back afterwards.

    Batch-norm statistics do not move, since evaluation mode does not touch them. What is no `nn.Module` is left alone.
    """
    modules = [part for model in models if isinstance(model, nn.Module) for part in model.modules()]
    parameters = [p for model in models if isinstance(model, nn.Module) for p in model.parameters()]
    modes = [module.training for module in modules]
    wanted = [parameter.requires_grad for parameter in parameters]
    try:
        for module in modules:
            module.training = False
        for parameter in parameters:
            parameter.requires_grad_(False)
        with torch.enable_grad():
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
        for parameter, want in zip(parameters, wanted, strict=True):
            parameter.requires_grad_(want)


def sign_steps(
    origin: Tensor,
    valid: Tensor,
    loss: Callable[[Tensor], Tensor],
    *,
    epsilon: float,
    n_steps: int,
) -> Tensor:
    """x <- clip_eps(x + alpha · sgn grad loss(x)) with alpha = epsilon / 10, from `origin`, on valid samples only.

    loss: a sum over the batch, to be increased; call inside `frozen`
    """
    change = torch.zeros_like(origin)
    for _ in range(n_steps):
        x = (origin + change).requires_grad_()
        (gradient,) = torch.autograd.grad(loss(x), x)
        change = (change + _STEP * epsilon * gradient.sign() * valid).clamp_(-epsilon, epsilon).detach()
    return origin + change


@dataclass(frozen=True)
class Attack(ABC):
    """A way to change recordings by at most `epsilon` (in the units of the model's input) so that a model errs."""

    epsilon: float

    @final
    def __call__(self, classifier: Classifier, batch: Batch) -> Batch:
        """The batch, attacked: inside epsilon, padding still zero, the model as it was."""
        with frozen(classifier):
            attacked = self.perturb(classifier, batch).detach()
        change = (attacked - batch.signal).clamp(-self.epsilon, self.epsilon) * batch.valid
        return batch._replace(signal=batch.signal + change)

    @abstractmethod
    def perturb(self, classifier: Classifier, batch: Batch) -> Tensor:
        """The attacked signal; the only thing that an attack's author writes."""
