"""One network of an ensemble."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.members.bands import BandMask, Bands


class Block(nn.Module, ABC):
    """A piece of a network with a batch norm in it, split where DVERGE looks: after that norm."""

    @abstractmethod
    def normalised(self, h: Tensor, live: Tensor | None) -> Tensor:
        """The activation just after the block's (last) batch norm."""

    @abstractmethod
    def finished(self, normalised: Tensor, h: Tensor) -> Tensor:
        """The block's output, from `normalised` and the block's input."""

    def forward(self, h: Tensor, live: Tensor | None = None) -> Tensor:
        """`live` (batch, 1, time): 1 on the recording, 0 on padding; blocks that do not care ignore it."""
        return self.finished(self.normalised(h, live), h)


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
        self.bands = BandMask(bands, rate_hz) if bands is not None else nn.Identity()
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(n_features, n_classes)
        self.n_features = n_features

    def forward(self, x: Tensor) -> Tensor:
        """Logits (batch, class)."""
        logits: Tensor = self.head(self.embed(x))
        return logits

    def embed(self, x: Tensor) -> Tensor:
        """Features (batch, feature): what the last linear layer sees."""
        h, live = self.entered(x)
        for block in self.blocks:
            h = block(h, live)
            live = self.followed(live, h)
        return self.pooled(h, live)

    def stage(self, x: Tensor, block: int) -> Tensor:
        """The activation after the batch norm of the given block."""
        h, live = self.entered(x)
        for earlier in self.blocks[:block]:
            h = earlier(h, live)
            live = self.followed(live, h)
        chosen = self.blocks[block]
        assert isinstance(chosen, Block)  # noqa: S101 (for the type checker)
        return chosen.normalised(h, live)

    @abstractmethod
    def entered(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the first block sees, and where it is live."""

    def followed(self, live: Tensor | None, h: Tensor) -> Tensor | None:
        """`live` at the time resolution of `h`."""
        if live is None or live.shape[-1] == h.shape[-1]:
            return live
        return coarser(live, -(-live.shape[-1] // h.shape[-1]))

    def pooled(self, h: Tensor, live: Tensor | None) -> Tensor:
        """Mean over time, over the live part where one is known."""
        if live is None:
            return h.mean(dim=2)
        return (h * live).sum(dim=2) / live.sum(dim=2)


def coarser(live: Tensor, step: int) -> Tensor:
    """`live` at every `step`-th position: 1 where any of the next `step` samples is live, so that none is lost."""
    return live if step == 1 else F.max_pool1d(live, step, ceil_mode=True)


def live_span(x: Tensor) -> Tensor:
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
