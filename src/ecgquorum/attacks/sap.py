"""Smooth adversarial perturbations (SAP): changes without the square edges of PGD.

After Han et al. 2020: x' = x + mean_m theta * K(s_m, sigma_m), with theta updated as in PGD. The mean of convolutions
with Gaussian kernels is one convolution with the mean kernel.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.attacks.attack import Attack, Model, cross_entropy, input_gradient
from ecgquorum.attacks.pgd import PGD
from ecgquorum.errors import AttackError

PHYSIONET_KERNELS = ((5, 7, 11, 15, 19), (1.0, 3.0, 5.0, 7.0, 10.0))
CPSC_KERNELS = ((9, 11, 15, 19, 21), (5.0, 7.0, 10.0, 13.0, 17.0))
"""Sizes in samples and widths of the paper's kernels."""


@final
@dataclass(frozen=True, kw_only=True)
class SAP(Attack):
    """The smooth attack: 40 steps from the result of PGD, as published.

    sizes, widths: of the Gaussian kernels
    pairs:         combine size i with width i (the paper's text) instead of every size with every width (both codes)
    from_pgd:      start from the change that PGD finds instead of none
    start:         start from this change instead, (batch, lead, time), such as one of PGD that is known already
    """

    norms = ("linf",)
    sizes: tuple[int, ...] = PHYSIONET_KERNELS[0]
    widths: tuple[float, ...] = PHYSIONET_KERNELS[1]
    pairs: bool = False
    from_pgd: bool = True
    n_steps: int = 40
    step: float = 0.1
    start: Tensor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sizes or not all(isinstance(size, int) and size > 0 and size % 2 for size in self.sizes):
            raise AttackError(f"SAP: sizes: expected odd numbers of samples, found {self.sizes}")
        if not self.widths or not all(isinstance(w, int | float) and 0 < w < math.inf for w in self.widths):
            raise AttackError(f"SAP: widths: expected numbers above 0, found {self.widths}")
        if self.pairs and len(self.sizes) != len(self.widths):
            raise AttackError(f"SAP: pairs: expected as many sizes as widths, found {self.sizes} and {self.widths}")

    def perturb(self, model: Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator) -> Tensor:
        """Run the steps; return the last iterate."""
        bound, loss = self.bound(x), cross_entropy(model, y)
        theta = torch.zeros_like(x) if self.start is None else self.start
        first = self.first_attack()
        if first:
            theta = first.perturb(model, x, y, valid, generator) - x
        kernel = self.kernel().to(x)

        def apply(theta: Tensor) -> Tensor:
            return x + smooth(theta, kernel) * valid

        for _ in range(self.n_steps):
            _, gradient = input_gradient(lambda t: loss(apply(t)), theta)
            moved = theta + self.step * bound * gradient.sign() * valid
            theta = torch.minimum(torch.maximum(moved, -bound), bound)
        return apply(theta)

    def first_attack(self) -> PGD | None:
        """Return the attack whose result this one starts from; None: it has its start."""
        return PGD(self.epsilon) if self.from_pgd and self.start is None else None

    def kernel(self) -> Tensor:
        """Return the mean of all kernels, (longest size,); it sums to 1."""
        chosen = zip(self.sizes, self.widths, strict=True) if self.pairs else product(self.sizes, self.widths)
        longest = max(self.sizes)
        kernels = [F.pad(_gaussian(s, w), ((longest - s) // 2, (longest - s) // 2)) for s, w in chosen]
        return torch.stack(kernels).mean(dim=0)


def smooth(theta: Tensor, kernel: Tensor) -> Tensor:
    """Convolve every lead with the kernel; the length stays."""
    n_leads = theta.shape[1]
    return F.conv1d(theta, kernel.expand(n_leads, 1, -1), padding=len(kernel) // 2, groups=n_leads)


def _gaussian(size: int, width: float) -> Tensor:
    place = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    bell = torch.exp(-0.5 * (place / width) ** 2)
    return bell / bell.sum()
