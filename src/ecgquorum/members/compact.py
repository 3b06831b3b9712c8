"""A small residual network for two CPU cores that keeps the paper's input space.

Its first layer is a fixed, differentiable, anti-aliased decimation to about 100 Hz, so an input of 300 Hz and
microvolts, and an attack on it, mean what they mean for the paper's network. Padding is masked in every block and in
the mean over time: the answer does not depend on how much of it there is.
"""

from itertools import pairwise
from typing import final

import numpy as np
import torch
from scipy.signal import firwin
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.members.bands import Bands
from ecgquorum.members.member import Block, Member, coarser, live_span

INNER_RATE_HZ = 100.0
_CHANNELS = (32, 48, 64, 96, 128)
_KERNEL = 7


class Decimation(nn.Module):
    """Every n-th sample after a low-pass filter just below the new half rate; a fixed filter, not a parameter."""

    taps: Tensor

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor
        taps = firwin(16 * factor + 1, 0.9 / factor) if factor > 1 else np.ones(1)
        self.register_buffer("taps", torch.tensor(taps, dtype=torch.float32)[None, None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, lead, time) -> (batch, lead, ceil(time / factor))."""
        if self.factor == 1:
            return x
        n_leads = x.shape[1]
        padding = self.taps.shape[-1] // 2
        weight = self.taps.to(x.dtype).expand(n_leads, 1, -1)
        return F.conv1d(x, weight, stride=self.factor, padding=padding, groups=n_leads)


@final
class _Stem(Block):
    def __init__(self, n_leads: int, n_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n_leads, n_out, 15, stride=2, padding=7, bias=False)
        self.norm = nn.BatchNorm1d(n_out)

    def normalised(self, h: Tensor, live: Tensor | None) -> Tensor:
        normalised: Tensor = self.norm(self.conv(_masked(h, live)))
        return normalised

    def finished(self, normalised: Tensor, h: Tensor) -> Tensor:  # noqa: ARG002
        return F.relu(normalised)


@final
class _ResidualBlock(Block):
    """Two convolutions beside a shortcut; the first one and the shortcut halve the time resolution."""

    def __init__(self, n_in: int, n_out: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Conv1d(n_in, n_out, _KERNEL, stride=2, padding=_KERNEL // 2, bias=False)
        self.first_norm = nn.BatchNorm1d(n_out)
        self.second = nn.Conv1d(n_out, n_out, _KERNEL, padding=_KERNEL // 2, bias=False)
        self.norm = nn.BatchNorm1d(n_out)
        self.shortcut = nn.Conv1d(n_in, n_out, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def normalised(self, h: Tensor, live: Tensor | None) -> Tensor:
        inner = self.dropout(F.relu(self.first_norm(self.first(_masked(h, live)))))
        normalised: Tensor = self.norm(self.second(_masked(inner, None if live is None else coarser(live, 2))))
        return normalised

    def finished(self, normalised: Tensor, h: Tensor) -> Tensor:
        return F.relu(normalised + self.shortcut(h[..., ::2]))


def _masked(h: Tensor, live: Tensor | None) -> Tensor:
    return h if live is None else h * live


@final
class CompactMember(Member):
    """About 0.4 million parameters at width 1."""

    def __init__(
        self,
        n_leads: int,
        n_classes: int,
        rate_hz: float,
        *,
        width: float = 1.0,
        dropout: float = 0.3,
        bands: Bands | None = None,
    ) -> None:
        channels = [max(4, round(c * width)) for c in _CHANNELS]
        blocks: list[Block] = [_Stem(n_leads, channels[0])]
        blocks += [_ResidualBlock(a, b, dropout) for a, b in pairwise(channels)]
        super().__init__(blocks, channels[-1], n_classes, rate_hz, bands)
        self.decimation = Decimation(max(1, round(rate_hz / INNER_RATE_HZ)))

    def entered(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The recording at about 100 Hz, and where it is: the rest of the window is padding."""
        live = coarser(live_span(x), self.decimation.factor)
        return self.decimation(self.bands(x)), live
