"""The paper's network: 13 blocks of dilated convolution, batch norm, ReLU, (max-pool,) dropout.

After Han et al., "Deep learning models for electrocardiograms are susceptible to adversarial attack", 2020.

Its max-pools are dilated and read only every second position of the block before them, and so do, in turn, the blocks
before those: half of what the published network computes is never read. Here only what is read is computed. Every
block's output lives on a `Grid` of positions of the published one's; the answers are the same, for every length.
"""

from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.members.band_filter import Bands
from ecgquorum.members.kernels.dropout import Dropout
from ecgquorum.members.kernels.folding import Folded, Folding, is_frozen
from ecgquorum.members.kernels.patch_convolution import patch_convolved
from ecgquorum.members.kernels.tiled_convolution import Geometry, convolved
from ecgquorum.members.member import Block, Member


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

    reads: positions of its input that are there · convolved: of its convolution, that are needed · gives: of its output
    """

    shape: _Shape
    reads: Grid
    convolved: Grid
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
class _DilatedBlock(Block):
    """One block of the published network, on the positions that are read of it.

    Where it is in the signal is told by the length of the published block's input.
    """

    def __init__(self, n_in: int, n_out: int, plan: Plan, dropout: float) -> None:
        super().__init__()
        shape = plan.shape
        self.plan = plan
        self.conv = nn.Conv1d(n_in, n_out, shape.kernel, padding=shape.padding, dilation=shape.dilation)
        self.norm = nn.BatchNorm1d(n_out)
        self.dropout = Dropout(dropout)
        self._folding = Folding()

    def normalised(self, h: Tensor, where: int) -> Tensor:
        """The activation after the batch norm, on the positions that are needed."""
        if is_frozen(self.conv, self.norm):
            return self._folded(h, where, relu=False)
        normalised: Tensor = self.norm(self._convolved(h, where, self.conv.weight, self.conv.bias))
        return normalised

    def finished(self, normalised: Tensor, h: Tensor, where: int) -> Tensor:  # noqa: ARG002
        """Pool, ReLU and dropout: the larger of two is rectified instead of two, which keeps less for the gradient."""
        finished: Tensor = self.dropout(F.relu(self._pooled(normalised, where)))
        return finished

    def forward(self, h: Tensor, where: int) -> Tensor:
        """The block's output."""
        if is_frozen(self.conv, self.norm):
            if self.plan.reads.step != self.plan.convolved.step and h.device.type == "cpu":
                return self._folded_and_pooled(h, where)
            return self._pooled(self._folded(h, where, relu=True), where)
        return self.finished(self.normalised(h, where), h, where)

    def beyond(self, where: int, h: Tensor) -> int:  # noqa: ARG002
        """The length of the published block's output."""
        return self.plan.lengths(where)[1]

    def _folded(self, h: Tensor, where: int, *, relu: bool) -> Tensor:
        folded = self._folding(self.conv, self.norm)
        return self._convolved(h, where, folded.weight, folded.bias, relu=relu, folded=folded)

    def _convolved(
        self,
        h: Tensor,
        where: int,
        weight: Tensor,
        bias: Tensor | None,
        *,
        relu: bool = False,
        folded: Folded | None = None,
    ) -> Tensor:
        """The convolution at the positions that are needed, from those that are there."""
        shape, reads, wanted = self.plan.shape, self.plan.reads, self.plan.convolved
        n_out = wanted.count(self.plan.lengths(where)[0])
        if reads.step == wanted.step:
            step, dilation = 1, shape.dilation // reads.step
            left = (shape.padding + reads.first - wanted.first) // reads.step
        else:
            step, dilation, left = wanted.step, shape.dilation, shape.padding - wanted.first
        right = (n_out - 1) * step + dilation * (shape.kernel - 1) + 1 - left - h.shape[2]
        geometry = Geometry(shape.kernel, dilation, left, right, step)
        return convolved(h, weight, bias, geometry, relu=relu, tiled=folded.in_tiles if folded else None)

    def _folded_and_pooled(self, h: Tensor, where: int) -> Tensor:
        """The first block: each of the two positions that the pool compares is convolved by itself.

        Where the pool reads its own padding, nothing comes out.
        """
        shape, wanted, gives = self.plan.shape, self.plan.convolved, self.plan.gives
        n_conv, n_out = self.plan.lengths(where)
        count, folded = gives.count(n_out), self._folding(self.conv, self.norm)
        n_there, step = wanted.count(n_conv), wanted.step * gives.step
        compared = []
        for offset in (-1, 0):  # of the wanted positions: those before j, and j
            left = shape.padding - wanted.first - wanted.step * (gives.first + offset)
            right = step * (count - 1) + shape.kernel - left - h.shape[2]
            first, last = gives.first + offset, gives.first + offset + gives.step * (count - 1)
            silent = [place for place, beyond in ((0, first < 0), (count - 1, last >= n_there)) if beyond]
            geometry = Geometry(shape.kernel, 1, left, right, step)
            compared.append(patch_convolved(h, folded.weight, folded.bias, geometry, silent))
        return torch.maximum(*compared)

    def _pooled(self, h: Tensor, where: int) -> Tensor:
        """The larger of the published positions 2j - 1 and 2j + 1, that is of j - 1 and j of the odd ones.

        It is rectified, before or after, so zeros stand for the pool's padding.
        """
        if not self.plan.shape.pooled:
            return h
        gives = self.plan.gives
        count = gives.count(self.plan.lengths(where)[1])
        last = gives.first + gives.step * (count - 1)
        padded = F.pad(h, (1, max(0, last + 1 - h.shape[2])))
        before = padded[..., gives.first : last + 1 : gives.step]
        after = padded[..., gives.first + 1 : last + 2 : gives.step]
        return torch.maximum(before, after)


@final
class DilatedMember(Member):
    """The 13-block dilated CNN; at width 1 exactly the published one.

    While training, batch-norm statistics are over the positions that are read, not over those that nobody reads.
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
        blocks: list[Block] = []
        n_in = n_leads
        for plan in PLANS:
            n_out = max(4, round(plan.shape.channels * width))
            blocks.append(_DilatedBlock(n_in, n_out, plan, dropout))
            n_in = n_out
        super().__init__(blocks, n_in, n_classes, rate_hz, bands)

    def entered(self, x: Tensor, span: Tensor | None = None) -> tuple[Tensor, int]:  # noqa: ARG002
        """As published: padding is part of the signal, and the mean runs over all of the window."""
        return self.bands(x), x.shape[2]

    def pooled(self, h: Tensor, where: int) -> Tensor:  # noqa: ARG002
        """Mean over time."""
        return h.mean(dim=2)
