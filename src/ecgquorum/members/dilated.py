"""The paper's network: 13 blocks of dilated convolution, batch norm, ReLU, (max-pool,) dropout.

After Han et al., "Deep learning models for electrocardiograms are susceptible to adversarial attack", 2020.
"""

from typing import NamedTuple, final

from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.members.bands import Bands
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


@final
class _DilatedBlock(Block):
    def __init__(self, n_in: int, n_out: int, shape: _Shape, dropout: float) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n_in, n_out, shape.kernel, padding=shape.padding, dilation=shape.dilation)
        self.norm = nn.BatchNorm1d(n_out)
        self.pool = nn.MaxPool1d(2, stride=2, padding=1, dilation=2) if shape.pooled else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def normalised(self, h: Tensor, live: Tensor | None) -> Tensor:  # noqa: ARG002
        normalised: Tensor = self.norm(self.conv(h))
        return normalised

    def finished(self, normalised: Tensor, h: Tensor) -> Tensor:  # noqa: ARG002
        finished: Tensor = self.dropout(self.pool(F.relu(normalised)))
        return finished


@final
class DilatedMember(Member):
    """The 13-block dilated CNN; at width 1 exactly the published one."""

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
        for shape in SHAPES:
            n_out = max(4, round(shape.channels * width))
            blocks.append(_DilatedBlock(n_in, n_out, shape, dropout))
            n_in = n_out
        super().__init__(blocks, n_in, n_classes, rate_hz, bands)

    def entered(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """As published: padding is part of the signal, and the mean runs over all of the window."""
        return self.bands(x), None
