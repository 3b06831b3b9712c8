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

from ecgquorum.members.band_filter import Bands
from ecgquorum.members.kernels.batch_max import BatchMax
from ecgquorum.members.kernels.dropout import Dropout
from ecgquorum.members.kernels.folding import Folding, is_frozen
from ecgquorum.members.member import Block, Member, downsample_mask, valid_span

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


class _ConvNorm(nn.Module):
    """A convolution along time and its batch norm, folded into one while nothing is trained.

    Signals are (batch, channel, 1, time) with the channels of a sample side by side in memory, which is how PyTorch
    convolves small shapes fastest on a CPU.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int, step: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, (1, kernel), (1, step), (0, kernel // 2), bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        self._folding = Folding()

    def forward(self, h: Tensor) -> Tensor:
        if is_frozen(self.conv, self.norm):
            folded = self._folding(self.conv, self.norm)
            return F.conv2d(h, folded.weight, folded.bias, self.conv.stride, self.conv.padding)
        normalised: Tensor = self.norm(self.conv(h))
        return normalised


@final
class _Stem(Block):
    def __init__(self, n_leads: int, n_out: int) -> None:
        super().__init__()
        self.last = _ConvNorm(n_leads, n_out, 15, step=2)

    def normalised(self, h: Tensor, where: Tensor | None) -> Tensor:
        normalised: Tensor = self.last(_masked(h, where))
        return normalised.contiguous(memory_format=torch.channels_last)

    def finished(self, normalised: Tensor, h: Tensor, where: Tensor | None) -> Tensor:  # noqa: ARG002
        return F.relu(normalised, inplace=True)

    def beyond(self, where: Tensor | None, h: Tensor) -> Tensor | None:  # noqa: ARG002
        return _coarser(where)


@final
class _ResidualBlock(Block):
    """Two convolutions beside a shortcut; the first one and the shortcut halve the time resolution."""

    def __init__(self, n_in: int, n_out: int, dropout: float) -> None:
        super().__init__()
        self.first = _ConvNorm(n_in, n_out, _KERNEL, step=2)
        self.last = _ConvNorm(n_out, n_out, _KERNEL, step=1)
        self.shortcut = nn.Conv2d(n_in, n_out, 1, bias=False)
        self.dropout = Dropout(dropout)

    def normalised(self, h: Tensor, where: Tensor | None) -> Tensor:
        inner = self.dropout(F.relu(self.first(_masked(h, where)), inplace=True))
        normalised: Tensor = self.last(_masked(inner, _coarser(where)))
        return normalised

    def finished(self, normalised: Tensor, h: Tensor, where: Tensor | None) -> Tensor:  # noqa: ARG002
        return F.relu(normalised + self._halved(h), inplace=True)

    def _halved(self, h: Tensor) -> Tensor:
        """The shortcut, of every second sample.

        Neighbours are taken as one sample of twice the channels, of which the second half has no weight: this needs no
        copy, forward or back. (A step of 2 in a convolution of one tap writes beyond its memory in PyTorch 2.13.)
        """
        n_records, n_channels, _, n_samples = h.shape
        if n_samples % 2:
            h = F.pad(h, (0, 1))
        by_time = h.permute(0, 2, 3, 1).reshape(n_records, 1, -1, 2 * n_channels)
        weight = torch.cat([self.shortcut.weight, torch.zeros_like(self.shortcut.weight)], dim=1)
        return F.conv2d(by_time.permute(0, 3, 1, 2), weight)

    def beyond(self, where: Tensor | None, h: Tensor) -> Tensor | None:  # noqa: ARG002
        return _coarser(where)


def _masked(h: Tensor, live: Tensor | None) -> Tensor:
    return h if live is None else h * live


def _coarser(live: Tensor | None) -> Tensor | None:
    return None if live is None else downsample_mask(live[:, :, 0], 2)[:, :, None]


@final
class CompactMember(Member):
    """About 0.4 million parameters at width 1.

    Blocks tell each other where the recording is: (batch, 1, 1, time), 1 on it and 0 on padding; None: everywhere.
    """

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
        self._batch_max = BatchMax()  # batch norm counts what is left, which must be the same on all ranks

    def entered(self, x: Tensor, span: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The recording at about 100 Hz, and where it is: the rest of the window is padding.

        Padding that no recording of the batch reaches is left out: it would be masked in every block.
        """
        live, heard = valid_span(x), self.bands(x)
        if torch.compiler.is_exporting():  # a graph cannot look at what is in a batch
            return self.decimation(heard)[:, :, None], downsample_mask(live, self.decimation.factor)[:, :, None]
        first, last = self._reached(live if span is None else span)
        if last - first < x.shape[2]:
            live, heard = live[..., first:last], heard[..., first:last]
        live = downsample_mask(live, self.decimation.factor)
        return self.decimation(heard)[:, :, None], None if bool(live.all()) else live[:, :, None]

    def _reached(self, live: Tensor) -> tuple[int, int]:
        """From where to where there is a recording, and as much around it as the decimation looks ahead and behind.

        Both are whole steps of the coarsest grid, so that every block sees the same samples as in the whole window.
        """
        n_samples, coarsest = live.shape[2], self.decimation.factor << len(self.blocks)
        margin = self.decimation.taps.shape[-1] // 2
        anywhere = self._batch_max(live).amax(dim=0).nonzero()
        first, last = int(anywhere[0]) - margin, int(anywhere[-1]) + 1 + margin
        return max(0, first // coarsest * coarsest), min(n_samples, -(-last // coarsest) * coarsest)

    def pooled(self, h: Tensor, where: Tensor | None) -> Tensor:
        """Mean over the recording, not over padding."""
        if where is None:
            return h.mean(dim=(2, 3))
        return (h * where).sum(dim=(2, 3)) / where.sum(dim=(2, 3))
