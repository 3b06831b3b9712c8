"""Smooth adversarial perturbations: changes that look like drift, not like square waves (METHOD, section 7).

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

from ecgquorum.attacks.attack import Attack, Classifier, cross_entropy, input_gradient
from ecgquorum.attacks.pgd import PGD
from ecgquorum.cohorts import Batch
from ecgquorum.errors import AttackError

PHYSIONET_KERNELS = ((5, 7, 11, 15, 19), (1.0, 3.0, 5.0, 7.0, 10.0))
CPSC_KERNELS = ((9, 11, 15, 19, 21), (5.0, 7.0, 10.0, 13.0, 17.0))
"""Sizes in samples and widths of the paper's kernels."""


@final
@dataclass(frozen=True, kw_only=True)
class SAP(Attack):
    """The smooth attack, begun from PGD's result and run 40 steps, as published.

    sizes, widths: of the Gaussian kernels
    pairs:         use size i with width i, as the text says, instead of all combinations, as the codes do
    from_pgd:      begin with the change that PGD finds instead of none
    """

    norms = ("linf",)
    sizes: tuple[int, ...] = PHYSIONET_KERNELS[0]
    widths: tuple[float, ...] = PHYSIONET_KERNELS[1]
    pairs: bool = False
    from_pgd: bool = True
    n_steps: int = 40
    step: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sizes or not all(isinstance(size, int) and size > 0 and size % 2 for size in self.sizes):
            raise AttackError(f"SAP: sizes: expected odd numbers of samples, found {self.sizes}")
        if not self.widths or not all(isinstance(w, int | float) and 0 < w < math.inf for w in self.widths):
            raise AttackError(f"SAP: widths: expected numbers above 0, found {self.widths}")
        if self.pairs and len(self.sizes) != len(self.widths):
            raise AttackError(f"SAP: pairs: expected as many sizes as widths, found {self.sizes} and {self.widths}")

    def perturb(self, classifier: Classifier, batch: Batch, generator: torch.Generator) -> Tensor:
        """The last of the steps."""
        bound, loss = self.bound(batch), cross_entropy(classifier, batch.label)
        theta = torch.zeros_like(batch.signal)
        if self.from_pgd:
            theta = PGD(self.epsilon).perturb(classifier, batch, generator) - batch.signal
        kernel = self.kernel().to(batch.signal)

        def smoothed(theta: Tensor) -> Tensor:
            return batch.signal + smooth(theta, kernel) * batch.valid

        for _ in range(self.n_steps):
            _, gradient = input_gradient(lambda t: loss(smoothed(t)), theta)
            moved = theta + self.step * bound * gradient.sign() * batch.valid
            theta = torch.minimum(torch.maximum(moved, -bound), bound)
        return smoothed(theta)

    def kernel(self) -> Tensor:
        """The mean of all kernels, (longest size,), its sum 1."""
        chosen = zip(self.sizes, self.widths, strict=True) if self.pairs else product(self.sizes, self.widths)
        longest = max(self.sizes)
        kernels = [F.pad(_gaussian(s, w), ((longest - s) // 2, (longest - s) // 2)) for s, w in chosen]
        return torch.stack(kernels).mean(dim=0)


def smooth(theta: Tensor, kernel: Tensor) -> Tensor:
    """Every lead convolved with the kernel, the length kept."""
    n_leads = theta.shape[1]
    return F.conv1d(theta, kernel.expand(n_leads, 1, -1), padding=len(kernel) // 2, groups=n_leads)


def _gaussian(size: int, width: float) -> Tensor:
    place = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    bell = torch.exp(-0.5 * (place / width) ** 2)
    return bell / bell.sum()
