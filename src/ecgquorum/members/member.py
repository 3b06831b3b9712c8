"""One network of an ensemble."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.members.band_filter import BandFilter, Bands


class Block(nn.Module, ABC):
    """A piece of a network with a batch norm in it, split where DVERGE looks: after that norm."""

    @abstractmethod
    def normalised(self, h: Tensor, where: Any) -> Tensor:
        """The activation just after the block's (last) batch norm.

        where: what the network's blocks tell each other about where in the recording they are
        """

    @abstractmethod
    def finished(self, normalised: Tensor, h: Tensor, where: Any) -> Tensor:
        """The block's output, from `normalised` and the block's input."""

    def forward(self, h: Tensor, where: Any) -> Tensor:
        """The block's output."""
        return self.finished(self.normalised(h, where), h, where)

    @abstractmethod
    def beyond(self, where: Any, h: Tensor) -> Any:
        """`where` for the next block, whose input is `h`."""


class Member(nn.Module, ABC):
    """One network: bands -> blocks -> mean over time -> features -> logits.

    forward(x) gives logits (batch, class), embed(x) the features before the last linear layer (batch, feature),
    stage(x, l) the activation after the batch norm of block l. x is (batch, lead, time), padded with zeros.
    """

    n_features: int

    def __init__(
        self, blocks: list[Block], n_features: int, n_classes: int, rate_hz: float, bands: Bands | None
    ) -> None:
        super().__init__()
        self.bands = BandFilter(bands, rate_hz) if bands is not None else nn.Identity()
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(n_features, n_classes)
        self.n_features = n_features

    def forward(self, x: Tensor) -> Tensor:
        """Logits (batch, class)."""
        logits: Tensor = self.head(self.embed(x))
        return logits

    def embed(self, x: Tensor) -> Tensor:
        """Features (batch, feature): what the last linear layer sees."""
        h, where = self._passed(x, len(self.blocks))
        return self.pooled(h, where)

    def stage(self, x: Tensor, block: int, span: Tensor | None = None) -> Tensor:
        """The activation after the batch norm of the given block.

        span: as for `entered`; two batches with the same one have activations that can be compared
        """
        h, where = self._passed(x, block, span)
        chosen = self.blocks[block]
        assert isinstance(chosen, Block)  # noqa: S101 (for the type checker)
        return chosen.normalised(h, where)

    def _passed(self, x: Tensor, n_blocks: int, span: Tensor | None = None) -> tuple[Tensor, Any]:
        """x after the first blocks, and where that is."""
        h, where = self.entered(x, span)
        for block in self.blocks[:n_blocks]:
            assert isinstance(block, Block)  # noqa: S101 (for the type checker)
            h = block(h, where)
            where = block.beyond(where, h)
        return h, where

    @abstractmethod
    def entered(self, x: Tensor, span: Tensor | None = None) -> tuple[Tensor, Any]:
        """What the first block sees, and where that is.

        span: (any, 1, time), 1 where padding must not be left out; absent: a network may look for itself
        """

    @abstractmethod
    def pooled(self, h: Tensor, where: Any) -> Tensor:
        """The mean over time, (batch, feature)."""


def downsample_mask(live: Tensor, step: int) -> Tensor:
    """`live` at every `step`-th position: 1 where any of the next `step` samples is live, so that none is lost."""
    return live if step == 1 else F.max_pool1d(live, step, ceil_mode=True)


def valid_span(x: Tensor) -> Tensor:
    """(batch, 1, time) of 0 and 1: from the first to the last sample that is not zero on some lead.

    Padding is exactly zero, so this finds the recording inside its window without being told. An all-zero input is
    live throughout.
    """
    with torch.no_grad():
        touched = (x != 0).any(dim=1, keepdim=True).to(x.dtype)
        begun = touched.cumsum(dim=2) > 0
        ahead = touched.flip(2).cumsum(dim=2).flip(2) > 0
        empty = ~touched.any(dim=2, keepdim=True)
        return ((begun & ahead) | empty).to(x.dtype)
