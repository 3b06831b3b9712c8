"""A small residual network that trains on two CPU cores and takes the same input as the paper's network.

Its first layer is a fixed, differentiable, anti-aliased decimation to about 100 Hz, so that an attack of 50 microvolts
at 300 Hz means the same for both networks. It removes what is above 45 Hz; without it, the first convolution reads all
frequencies, over the same time and with the same step. Padding is masked in every block and in the pooling over time:
logits do not depend on how much of it there is.
"""

from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.errors import MemberError
from ecgquorum.members.contract import downsample_mask, valid_span
from ecgquorum.members.kernels.batch_max import BatchMax
from ecgquorum.members.kernels.dropout import Dropout
from ecgquorum.members.kernels.folding import Folded, Folding, is_frozen
from ecgquorum.members.pooling import POOLINGS, build_pooling

INNER_RATE_HZ = 100.0
_CHANNELS = (32, 48, 64, 96, 128)
_KERNEL = 7
_N_FEATURES = 64


def _low_pass(factor: int) -> NDArray[np.float64]:
    """Taps of a windowed sinc filter at 0.9 of half the new rate: `scipy.signal.firwin`, which takes long to import."""
    if factor == 1:
        return np.ones(1)
    n_taps = 16 * factor + 1
    taps = np.hamming(n_taps) * np.sinc((np.arange(n_taps) - n_taps // 2) * 0.9 / factor)
    return np.asarray(taps / taps.sum())


class Decimation(nn.Module):
    """Keep every n-th sample after a fixed low-pass filter just below half the new rate."""

    taps: Tensor

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor
        self.register_buffer("taps", torch.tensor(_low_pass(factor), dtype=torch.float32)[None, None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, lead, time) -> (batch, lead, ceil(time / factor))."""
        if self.factor == 1:
            return x
        n_leads = x.shape[1]
        padding = self.taps.shape[-1] // 2
        weight = self.taps.to(x.dtype).expand(n_leads, 1, -1)
        return F.conv1d(x, weight, stride=self.factor, padding=padding, groups=n_leads)


class _ConvNorm(nn.Module):
    """A convolution along time and its batch norm, folded into one while the network is frozen.

    Signals are (batch, channel, 1, time) in channels-last memory, the fastest layout for small shapes on a CPU.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int, step: int, dilation: int = 1) -> None:
        super().__init__()
        padding = dilation * (kernel // 2)
        self.conv = nn.Conv2d(n_in, n_out, (1, kernel), (1, step), (0, padding), (1, dilation), bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        self._folding = Folding()

    def forward(self, h: Tensor) -> Tensor:
        if self.is_frozen():
            folded, conv = self.fold(), self.conv
            return F.conv2d(h, folded.weight, folded.bias, conv.stride, conv.padding, conv.dilation)
        normalised: Tensor = self.norm(self.conv(h))
        return normalised

    def is_frozen(self) -> bool:
        """Whether only the folded form is needed."""
        return is_frozen(self.conv, self.norm)

    def fold(self) -> Folded:
        """The convolution with its batch norm as one weight and one bias."""
        return self._folding(self.conv, self.norm)


class _Stem(nn.Module):
    """The first convolution, of every `step`-th sample.

    factor: on its 15 taps and its step of 2
    """

    def __init__(self, n_leads: int, n_out: int, factor: int) -> None:
        super().__init__()
        self.step = 2 * factor
        self.last = _ConvNorm(n_leads, n_out, 15 * factor | 1, step=self.step)

    def forward(self, h: Tensor, mask: Tensor | None) -> Tensor:
        h = _apply_mask(h, mask)
        if self.last.is_frozen():
            return self._multiply_patches(h)
        normed: Tensor = self.last(h)
        return F.relu(normed.contiguous(memory_format=torch.channels_last), inplace=True)

    def _multiply_patches(self, h: Tensor) -> Tensor:
        """Convolution and ReLU as one matrix product, channels last: convolutions of so few leads are slow."""
        folded, conv = self.last.fold(), self.last.conv
        kernel, step, padding = conv.kernel_size[1], conv.stride[1], int(conv.padding[1])
        patches = F.pad(h[:, :, 0], (padding, padding)).unfold(2, kernel, step)  # (batch, lead, time, tap)
        n_records, _, n_samples, _ = patches.shape
        rows = patches.transpose(1, 2).reshape(n_records * n_samples, -1)
        product = F.relu(torch.addmm(folded.bias, rows, folded.weight.flatten(1).t()), inplace=True)
        return product.view(n_records, 1, n_samples, -1).permute(0, 3, 1, 2)


class _ResidualBlock(nn.Module):
    """Two convolutions and a shortcut; the first convolution and the shortcut halve the time resolution.

    dilations: of the two convolutions
    """

    def __init__(self, n_in: int, n_out: int, dropout: float, dilations: tuple[int, int]) -> None:
        super().__init__()
        self.first = _ConvNorm(n_in, n_out, _KERNEL, step=2, dilation=dilations[0])
        self.last = _ConvNorm(n_out, n_out, _KERNEL, step=1, dilation=dilations[1])
        self.shortcut = nn.Conv2d(n_in, n_out, 1, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, h: Tensor, mask: Tensor | None) -> Tensor:
        inner = self.dropout(F.relu(self.first(_apply_mask(h, mask)), inplace=True))
        normed: Tensor = self.last(_apply_mask(inner, _next_mask(mask)))
        if self.last.is_frozen() and h.shape[3] % 2 == 0:
            return self._add_shortcut(normed, h)
        return F.relu(normed + self._shortcut(h), inplace=True)

    def _add_shortcut(self, normed: Tensor, h: Tensor) -> Tensor:
        """ReLU of the sum of `normed` and the shortcut as one matrix product, where no weight is learned.

        Rows are samples; those of every second sample are a view of h, since two neighbours are adjacent in memory.
        ReLU changes the product in place before it is viewed: in place on a view, its backward pass copies everything.
        """
        n_in, n_out = h.shape[1], normed.shape[1]
        every_second = h.permute(0, 2, 3, 1).reshape(-1, 2 * n_in)[:, :n_in]
        total = torch.addmm(
            normed.permute(0, 2, 3, 1).reshape(-1, n_out), every_second, self.shortcut.weight.flatten(1).t()
        )
        return F.relu(total, inplace=True).view(len(h), 1, -1, n_out).permute(0, 3, 1, 2)

    def _shortcut(self, h: Tensor) -> Tensor:
        """Apply the 1x1 convolution to every second sample.

        Two neighbours are taken as one sample of twice the channels, of which the second half has weight zero: this
        needs no copy, forward or backward. (A stride of 2 in a 1x1 channels-last convolution writes beyond its memory
        in PyTorch 2.13.)
        """
        n_records, n_channels, _, n_samples = h.shape
        if n_samples % 2:
            h = F.pad(h, (0, 1))
        by_time = h.permute(0, 2, 3, 1).reshape(n_records, 1, -1, 2 * n_channels)
        weight = torch.cat([self.shortcut.weight, torch.zeros_like(self.shortcut.weight)], dim=1)
        return F.conv2d(by_time.permute(0, 3, 1, 2), weight)


def _apply_mask(h: Tensor, mask: Tensor | None) -> Tensor:
    return h if mask is None else h * mask.to(h.dtype)  # half as many bytes where activations are bfloat16


def _keep_precision(x: Tensor) -> AbstractContextManager[object]:
    """Switch autocast off, where it is on."""
    device = x.device.type
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def _next_mask(mask: Tensor | None, step: int = 2) -> Tensor | None:
    """The mask of every `step`-th sample."""
    return None if mask is None else downsample_mask(mask[:, :, 0], step)[:, :, None]


@final
class CompactMember(nn.Module):
    """About 0.45 million parameters at width 1, and a receptive field of about 11 s.

    Blocks pass on a mask (batch, 1, 1, time), 1 on the recording and 0 on padding; None: 1 everywhere.

    width:        factor on the number of channels
    dropout:      share of activations dropped in training
    pooling:      over time: "mean", "mean+std" or "mean+max+attention". After "mean" comes the classifier (the network
                  of version 0.1); after the others a layer of 64 features, then the classifier.
    dilation:     of the last convolutions: 1 for a receptive field of 5.5 s, 2 for 11 s
    low_pass:     filter at 45 Hz and decimate to 100 Hz first; without it, the first convolution reads all frequencies
                  (no difference below 150 Hz)
    crop_padding: leave out padding that no recording of the batch reaches; the logits are the same without it
    """

    def __init__(
        self,
        n_leads: int,
        n_classes: int,
        rate_hz: float,
        *,
        width: float = 1.0,
        dropout: float = 0.2,
        pooling: str = "mean+max+attention",
        dilation: int = 2,
        low_pass: bool = True,
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise MemberError(f"member compact: pooling: expected {', '.join(POOLINGS)}, found {pooling!r}")
        if dilation < 1:
            raise MemberError(f"member compact: dilation: expected at least 1, found {dilation}")
        if not isinstance(low_pass, bool):  # "no" would count as true
            raise MemberError(f"member compact: low_pass: expected true or false, found {low_pass!r}")
        self.config = {
            "width": width,
            "dropout": dropout,
            "pooling": pooling,
            "dilation": dilation,
            "low_pass": low_pass,
        }
        self.crop_padding = True
        channels = [max(4, round(c * width)) for c in _CHANNELS]
        dilations = [(1, 1), (1, 1), (1, dilation), (dilation, 2 * dilation - 1)]
        factor = max(1, round(rate_hz / INNER_RATE_HZ))
        self.decimation = Decimation(factor if low_pass else 1)
        self._batch_max = BatchMax()  # batch norm counts what is left, which must agree on all ranks
        blocks = (_ResidualBlock(a, b, dropout, d) for (a, b), d in zip(pairwise(channels), dilations, strict=True))
        stem = _Stem(n_leads, channels[0], 1 if low_pass else factor)
        self._stem_step = stem.step
        self.blocks = nn.ModuleList([stem, *blocks])
        self.pooling = build_pooling(pooling, channels[-1])
        n_pooled = self.pooling.n_out
        self.hidden: nn.Module = nn.Identity()
        if pooling != "mean":
            self.hidden = nn.Sequential(Dropout(dropout), nn.Linear(n_pooled, _N_FEATURES), nn.ReLU())
        self.head = nn.Linear(n_pooled if pooling == "mean" else _N_FEATURES, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, class) of x, (batch, lead, time), padded with zeros."""
        logits: Tensor = self.head(self.embed(x))
        return logits

    def embed(self, x: Tensor) -> Tensor:
        """Return features (batch, feature): the input of the last layer.

        Under autocast, the first convolution and the pooling keep the precision of x: a change of a few microvolts on
        a large deflection is lost in bfloat16.
        """
        with _keep_precision(x):
            h, mask = self._stem_input(x)
            h, mask = self.blocks[0](h, mask), _next_mask(mask, self._stem_step)
        for block in self.blocks[1:]:
            h, mask = block(h, mask), _next_mask(mask)
        with _keep_precision(x):
            features: Tensor = self.hidden(self.pooling(h.to(x.dtype), mask))
        return features

    def _stem_input(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the first convolution reads and its mask, without padding that no recording of the batch reaches."""
        valid = valid_span(x)
        if torch.compiler.is_exporting():  # an exported graph cannot depend on the content of a batch
            return self.decimation(x)[:, :, None], downsample_mask(valid, self.decimation.factor)[:, :, None]
        if self.crop_padding:
            first, last = self._crop(valid)
            if last - first < x.shape[2]:
                valid, x = valid[..., first:last], x[..., first:last]
        mask = downsample_mask(valid, self.decimation.factor)
        return self.decimation(x)[:, :, None], None if bool(mask.all()) else mask[:, :, None]

    def _crop(self, valid: Tensor) -> tuple[int, int]:
        """Where the recordings of the batch begin and end, with the margin that the decimation filter reaches.

        Both are whole steps of the coarsest grid, so that every block sees the same samples as in the whole window.
        """
        n_samples = valid.shape[2]
        coarsest = self.decimation.factor * self._stem_step << len(self.blocks) - 1
        margin = self.decimation.taps.shape[-1] // 2
        anywhere = self._batch_max(valid).amax(dim=0).nonzero()
        first, last = int(anywhere[0]) - margin, int(anywhere[-1]) + 1 + margin
        return max(0, first // coarsest * coarsest), min(n_samples, -(-last // coarsest) * coarsest)
