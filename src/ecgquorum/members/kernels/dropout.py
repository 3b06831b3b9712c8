"""Dropout with a fast random generator on CPUs."""

import math

import numpy as np
import torch
from torch import Tensor, nn

_LEVELS = 1 << 16


class Dropout(nn.Dropout):
    """Set each value to zero with probability p, else scale it by 1 / (1 - p), while training; p has 16-bit precision.

    PyTorch draws one number at a time from a Mersenne twister. Here its generator only seeds a faster one for each
    call, so that seeding PyTorch still fixes everything.
    """

    def __init__(self, p: float) -> None:
        super().__init__(p)

    def forward(self, x: Tensor) -> Tensor:
        """(any shape) -> the same."""
        threshold = round(self.p * _LEVELS)
        if not self.training or threshold == 0:
            return x
        if x.device.type != "cpu":
            return super().forward(x)
        seed = int(torch.randint(2**62, (1,)))
        drawn = np.random.Generator(np.random.SFC64(seed)).integers(_LEVELS, size=math.prod(x.shape), dtype=np.uint16)
        kept = torch.from_numpy(drawn >= threshold).view(x.shape)
        return (x * kept).mul_(_LEVELS / (_LEVELS - threshold))  # the mask is kept for the gradient: a byte a value
