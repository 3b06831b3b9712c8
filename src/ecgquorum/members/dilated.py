"""The paper's network: 13 blocks of dilated convolution, batch norm, ReLU, (max-pool,) dropout.

After Han et al., "Deep learning models for electrocardiograms are susceptible to adversarial attack", 2020.

Its max-pools are dilated: they read only every second position of the block before them, and so do, in turn, the
blocks before those. Half of what the published network computes is never read. Here only what is read is computed.
Every block's output lives on a `Grid` of positions of the published block's; logits are the same, for every length.
"""

from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.members.kernels.dropout import Dropout
from ecgquorum.members.kernels.folding import Folded, Folding, is_frozen
from ecgquorum.members.kernels.patch_convolution import convolve_patches
from ecgquorum.members.kernels.tiled_convolution import Geometry, convolve


class _Shape(NamedTuple):
    channels: int
    kernel: int
    dilation: int
    padding: int
    pooled: bool = False


SHAPES = (
    _Shape(320, 24, 1, 11, pooled=True),
    _Shape(256, 16, 2, 15),
    _Shape(256, 16, 4, 30),
    _Shape(256, 16, 4, 30),
    _Shape(256, 16, 4, 30),
    _Shape(128, 8, 4, 14, pooled=True),
    _Shape(128, 8, 6, 21),
    _Shape(128, 8, 6, 21),
    _Shape(128, 8, 6, 21),
    _Shape(128, 8, 6, 21),
    _Shape(128, 8, 8, 28, pooled=True),
    _Shape(64, 8, 8, 28),
    _Shape(64, 8, 8, 28),
)


class Grid(NamedTuple):
    """Positions first, first + step, ... of a sequence."""

    first: int
    step: int

    def count(self, length: int) -> int:
        """How many of them a sequence of this length has."""
        return max(0, -(-(length - self.first) // self.step))


EVERY, ODD = Grid(0, 1), Grid(1, 2)


class Plan(NamedTuple):
    """Where a block reads and what it gives.

    reads:    positions of its input that exist
    computes: positions of its convolution that are needed
    gives:    positions of its output
    """

    shape: _Shape
    reads: Grid
    computes: Grid
    gives: Grid

    def lengths(self, n_in: int) -> tuple[int, int]:
        """Of the published block's convolution and output, for a published input of this length."""
        reach = self.shape.dilation * (self.shape.kernel - 1)
        n_conv = n_in + 2 * self.shape.padding - reach
        return n_conv, (n_conv - 1) // 2 + 1 if self.shape.pooled else n_conv


def _plans() -> tuple[Plan, ...]:
    """From the last block, of which everything is needed, back to the first."""
    plans: list[Plan] = []
    gives = EVERY
    for shape in reversed(SHAPES):
        wanted = ODD if shape.pooled else gives  # a pool at j reads 2j - 1 and 2j + 1
        if shape.dilation % wanted.step == 0:
            reads = Grid((wanted.first - shape.padding) % wanted.step, wanted.step)
        else:
            reads = EVERY
        plans.append(Plan(shape, reads, wanted, gives))
        gives = reads
    return tuple(reversed(plans))


PLANS = _plans()


@final
class _DilatedBlock(nn.Module):
    """One block of the published network, on the positions that are read of it.

    `length` is the number of samples of the published block's input.
    """

    def __init__(self, n_in: int, n_out: int, plan: Plan, dropout: float) -> None:
        super().__init__()
        shape = plan.shape
        self.plan = plan
        self.conv = nn.Conv1d(n_in, n_out, shape.kernel, padding=shape.padding, dilation=shape.dilation)
        self.norm = nn.BatchNorm1d(n_out)
        self.dropout = Dropout(dropout)
        self._folding = Folding()

    def forward(self, h: Tensor, length: int) -> Tensor:
        """Return the block's output; of two positions the larger is rectified, which keeps less for the gradient."""
        if is_frozen(self.conv, self.norm):
            if self.plan.reads.step != self.plan.computes.step and h.device.type == "cpu":
                return self._convolve_folded_and_pool(h, length)
            return self._pool(self._convolve_folded(h, length), length)
        normed: Tensor = self.norm(self._convolve(h, length, self.conv.weight, self.conv.bias))
        output: Tensor = self.dropout(F.relu(self._pool(normed, length)))
        return output

    def output_length(self, length: int) -> int:
        """Return the length of the published block's output."""
        return self.plan.lengths(length)[1]

    def _convolve_folded(self, h: Tensor, length: int) -> Tensor:
        folded = self._folding(self.conv, self.norm)
        return self._convolve(h, length, folded.weight, folded.bias, relu=True, folded=folded)

    def _convolve(
        self,
        h: Tensor,
        length: int,
        weight: Tensor,
        bias: Tensor | None,
        *,
        relu: bool = False,
        folded: Folded | None = None,
    ) -> Tensor:
        """The convolution at the positions that are needed, from those that are there."""
        shape, reads, wanted = self.plan.shape, self.plan.reads, self.plan.computes
        n_out = wanted.count(self.plan.lengths(length)[0])
        if reads.step == wanted.step:
            step, dilation = 1, shape.dilation // reads.step
            left = (shape.padding + reads.first - wanted.first) // reads.step
        else:
            step, dilation, left = wanted.step, shape.dilation, shape.padding - wanted.first
        right = (n_out - 1) * step + dilation * (shape.kernel - 1) + 1 - left - h.shape[2]
        geometry = Geometry(shape.kernel, dilation, left, right, step)
        return convolve(h, weight, bias, geometry, relu=relu, tiled=folded.in_tiles if folded else None)

    def _convolve_folded_and_pool(self, h: Tensor, length: int) -> Tensor:
        """The first block: each of the two positions that the pool compares is convolved by itself.

        Where the pool reads its own padding, nothing comes out.
        """
        shape, wanted, gives = self.plan.shape, self.plan.computes, self.plan.gives
        n_conv, n_out = self.plan.lengths(length)
        count, folded = gives.count(n_out), self._folding(self.conv, self.norm)
        n_there, step = wanted.count(n_conv), wanted.step * gives.step
        compared = []
        for offset in (-1, 0):  # of the wanted positions: those before j, and j
            left = shape.padding - wanted.first - wanted.step * (gives.first + offset)
            right = step * (count - 1) + shape.kernel - left - h.shape[2]
            first, last = gives.first + offset, gives.first + offset + gives.step * (count - 1)
            silent = [place for place, beyond in ((0, first < 0), (count - 1, last >= n_there)) if beyond]
            geometry = Geometry(shape.kernel, 1, left, right, step)
            compared.append(convolve_patches(h, folded.weight, folded.bias, geometry, silent))
        return torch.maximum(*compared)

    def _pool(self, h: Tensor, length: int) -> Tensor:
        """The larger of the published positions 2j - 1 and 2j + 1, that is of j - 1 and j of the odd ones.

        It is rectified, before or after, so zeros stand for the pool's padding.
        """
        if not self.plan.shape.pooled:
            return h
        gives = self.plan.gives
        count = gives.count(self.plan.lengths(length)[1])
        last = gives.first + gives.step * (count - 1)
        padded = F.pad(h, (1, max(0, last + 1 - h.shape[2])))
        before = padded[..., gives.first : last + 1 : gives.step]
        after = padded[..., gives.first + 1 : last + 2 : gives.step]
        return torch.maximum(before, after)


@final
class DilatedMember(nn.Module):
    """The 13-block dilated CNN; at width 1 exactly the published one. Padding is part of the signal, as published.

    While training, batch-norm statistics are over the positions that are read.

    width:   factor on the number of channels
    dropout: share of activations dropped in training
    """

    def __init__(self, n_leads: int, n_classes: int, *, width: float = 1.0, dropout: float = 0.3) -> None:
        super().__init__()
        self.config = {"width": width, "dropout": dropout}
        channels = [n_leads, *(max(4, round(plan.shape.channels * width)) for plan in PLANS)]
        self.blocks = nn.ModuleList(
            _DilatedBlock(n_in, n_out, plan, dropout)
            for n_in, n_out, plan in zip(channels, channels[1:], PLANS, strict=False)
        )
        self.head = nn.Linear(channels[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, class) of x, (batch, lead, time)."""
        logits: Tensor = self.head(self.embed(x))
        return logits

    def embed(self, x: Tensor) -> Tensor:
        """Return features (batch, feature): the mean of the last block over time."""
        h, length = x, x.shape[2]
        for block in self.blocks:
            assert isinstance(block, _DilatedBlock)  # noqa: S101 (for the type checker)
            h, length = block(h, length), block.output_length(length)
        return h.mean(dim=2)
