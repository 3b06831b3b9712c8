"""Dropout whose random numbers do not cost more than the network."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from ecgquorum.parallel import distributed

_LEVELS = 1 << 16


class Dropout(nn.Module):
    """Each value is zero with probability p, else larger by 1 / (1 - p), while training; p to a sixteen-bit precision.

    PyTorch draws one number at a time from a Mersenne twister. Here its generator only seeds a faster one for each
    call, so that seeding PyTorch still fixes everything. Where ranks share a batch, each draws for all of it and takes
    its rows: what is dropped does not depend on how many they are.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """(any shape) -> the same."""
        threshold = round(self.p * _LEVELS)
        if not self.training or threshold == 0:
            return x
        share = distributed.shared()
        shape, rows = (x.shape, slice(None)) if share is None else ((share.n_records, *x.shape[1:]), share.rows())
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p) if share is None else x * self._on_gpu(x, shape)[rows]
        seed = int(torch.randint(2**62, (1,)))
        drawn = np.random.Generator(np.random.SFC64(seed)).integers(_LEVELS, size=math.prod(shape), dtype=np.uint16)
        kept = torch.from_numpy(drawn >= threshold).view(shape)[rows]
        return (x * kept).mul_(_LEVELS / (_LEVELS - threshold))  # the mask is kept for the gradient: a byte a value

    def _on_gpu(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """What to multiply the whole batch by, drawn in the order in which its values lie in memory."""
        side_by_side = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if side_by_side else torch.contiguous_format
        return nn.functional.dropout(torch.ones(shape, dtype=x.dtype, device=x.device).to(memory_format=layout), self.p)

    def extra_repr(self) -> str:
        """For printing."""
        return f"p={self.p}"
