"""The published network, attacks and losses, written plainly, for comparison.

Every position is computed, attacks compute parameter gradients too, each of SAP's 25 kernels is a convolution,
decorrelation uses a pseudo-inverse, and band filters use complex transforms.
"""

from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CHANNELS = [320] + [256] * 4 + [128] * 6 + [64] * 2
KERNELS = [24] + [16] * 4 + [8] * 8
DILATIONS = [1, 2, 4, 4, 4, 4, 6, 6, 6, 6, 8, 8, 8]
PADDINGS = [11, 15, 30, 30, 30, 14, 21, 21, 21, 21, 28, 28, 28]
POOLED = (1, 6, 11)


class Published(nn.Module):
    """The published network; returns logits and features."""

    def __init__(self, n_leads: int, n_classes: int) -> None:
        super().__init__()
        sizes = [n_leads, *CHANNELS]
        self.convs = nn.ModuleList(
            nn.Conv1d(sizes[i], sizes[i + 1], KERNELS[i], padding=PADDINGS[i], dilation=DILATIONS[i])
            for i in range(len(CHANNELS))
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(size) for size in CHANNELS)
        self.linear = nn.Linear(CHANNELS[-1], n_classes)

    def forward(self, x: Tensor, dropout: float = 0.3) -> tuple[Tensor, Tensor]:
        """Logits (batch, class) and features (batch, feature)."""
        for number, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True), start=1):
            x = F.relu(norm(conv(x)))
            if number in POOLED:
                x = F.max_pool1d(x, kernel_size=2, stride=2, padding=1, dilation=2)
            x = F.dropout(x, dropout, self.training)
        features = x.mean(dim=2)
        return self.linear(features), features


def multiplications(n_samples: int, n_leads: int = 1) -> int:
    """Number of multiplications of the published network for one recording."""
    total, length, n_in = 0, n_samples, n_leads
    for number, n_out in enumerate(CHANNELS):
        length += 2 * PADDINGS[number] - DILATIONS[number] * (KERNELS[number] - 1)
        total += n_in * n_out * KERNELS[number] * length
        if number + 1 in POOLED:
            length = (length - 1) // 2 + 1
        n_in = n_out
    return total


def band(x: Tensor, mask: Tensor) -> Tensor:
    """Filter by complex transforms; mask has one value per frequency."""
    return torch.fft.ifft(torch.fft.fft(x) * mask).real


def pgd_step(network: nn.Module, x: Tensor, natural: Tensor, label: Tensor, epsilon: float) -> Tensor:
    """One step of PGD."""
    x = x.clone().detach().requires_grad_(True)
    loss = F.cross_entropy(network(x)[0], label)
    network.zero_grad()
    loss.backward()
    moved = x + epsilon / 10 * x.grad.sign()  # type: ignore[union-attr]
    return torch.clamp(moved, natural - epsilon, natural + epsilon).detach()


def gaussian(size: int, width: float) -> Tensor:
    """A Gaussian kernel of SAP."""
    position = torch.arange(size, dtype=torch.float32) - (size - 1) / 2
    bell = torch.exp(-(position**2) / (2 * width**2))
    return (bell / bell.sum()).view(1, 1, -1)


def sap_step(
    network: nn.Module, theta: Tensor, natural: Tensor, label: Tensor, epsilon: float, kernels: list[Tensor]
) -> Tensor:
    """One step of SAP: the change is convolved with every kernel, and the results are averaged."""
    theta = theta.clone().detach().requires_grad_(True)
    smooth = [F.conv1d(theta, kernel, padding=kernel.shape[2] // 2) for kernel in kernels]
    attacked = natural + sum(smooth) / len(kernels)
    loss = F.cross_entropy(network(attacked)[0], label)
    network.zero_grad()
    loss.backward()
    moved = theta + epsilon / 10 * theta.grad.sign()  # type: ignore[union-attr]
    return torch.clamp(moved, -epsilon, epsilon).detach()


def sap_kernels(sizes: tuple[int, ...], widths: tuple[float, ...]) -> list[Tensor]:
    """Kernels of all sizes and widths."""
    return [gaussian(size, width) for size, width in product(sizes, widths)]


def decorrelation(features: Tensor, stored: Tensor, projection: Tensor) -> Tensor:
    """The decorrelation loss of one pair of members, by a pseudo-inverse."""
    regressor = torch.cat([stored @ projection, torch.ones(len(stored), 1)], dim=1)
    left = features - regressor @ (torch.linalg.pinv(regressor) @ features)
    total = features - features.mean(dim=0)
    return torch.log((total**2).sum() + 1e-5) - torch.log((left**2).sum() + 1e-5)
