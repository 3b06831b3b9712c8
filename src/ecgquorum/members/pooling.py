"""Pooling over time that leaves padding out.

Activations are (batch, channel, 1, time) and not negative; masks (batch, 1, 1, time), 1 on the recording and 0 on
padding; None: 1 everywhere. Results are (batch, n_out).
"""

import torch
from torch import Tensor, nn

_TINY = 1e-5  # keeps the gradient of a standard deviation of 0 finite


class MeanPooling(nn.Module):
    """The mean over time."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.n_out = n_channels

    def forward(self, h: Tensor, mask: Tensor | None) -> Tensor:
        """Return (batch, channel)."""
        return _mean(h, mask)


class MeanStdPooling(nn.Module):
    """Mean and standard deviation over time (statistics pooling, Snyder et al. 2018)."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.n_out = 2 * n_channels

    def forward(self, h: Tensor, mask: Tensor | None) -> Tensor:
        """Return (batch, 2 channel)."""
        mean = _mean(h, mask)
        variance = _mean((h - mean[:, :, None, None]) ** 2, mask)
        return torch.cat([mean, torch.sqrt(variance + _TINY)], dim=1)


class MeanMaxAttentionPooling(nn.Module):
    """Mean, maximum, and a mean whose weights are a softmax over time, for each channel on its own.

    a = sum_t softmax_t(W h)_t h_t, with W a 1x1 convolution
    """

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.n_out = 3 * n_channels
        self.attention = nn.Conv2d(n_channels, n_channels, 1)

    def forward(self, h: Tensor, mask: Tensor | None) -> Tensor:
        """Return (batch, 3 channel)."""
        scores: Tensor = self.attention(h)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -torch.inf)
        attended = (torch.softmax(scores, dim=3) * h).sum(dim=(2, 3))
        highest = (h if mask is None else h * mask).amax(dim=(2, 3))  # activations are never below 0
        return torch.cat([_mean(h, mask), highest, attended], dim=1)


Pooling = MeanPooling | MeanStdPooling | MeanMaxAttentionPooling

POOLINGS: dict[str, type[Pooling]] = {
    "mean": MeanPooling,
    "mean+std": MeanStdPooling,
    "mean+max+attention": MeanMaxAttentionPooling,
}


def build_pooling(name: str, n_channels: int) -> Pooling:
    """Build the pooling of this name for this number of channels."""
    return POOLINGS[name](n_channels)


def _mean(h: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return h.mean(dim=(2, 3))
    return (h * mask).sum(dim=(2, 3)) / mask.sum(dim=(2, 3))
