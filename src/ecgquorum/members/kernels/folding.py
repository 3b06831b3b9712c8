"""Fold batch norm into the convolution before it while a network is frozen."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ecgquorum.members.kernels.tiled_convolution import TiledKernel

Convolution = nn.Conv1d | nn.Conv2d
Norm = nn.BatchNorm1d | nn.BatchNorm2d


class Folded(NamedTuple):
    """Weight and bias of a convolution with its batch norm; `tiled` holds the DFT of the weight once it is needed."""

    weight: Tensor
    bias: Tensor
    tiled: list[TiledKernel]

    def in_tiles(self) -> TiledKernel:
        """Return the weight's DFT, computed once."""
        if not self.tiled:
            self.tiled.append(TiledKernel(self.weight))
        return self.tiled[0]


class Folding:
    """Cache of the folded form of a convolution and its batch norm, until one of them changes."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[Any, ...], Folded] | None = None

    def __call__(self, conv: Convolution, norm: Norm) -> Folded:
        """gamma (w x + b - mean) / sqrt(var + eps) + beta as one weight and one bias."""
        tensors = (conv.weight, conv.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var)
        state = tuple((t.data_ptr(), t._version, t.dtype) for t in tensors if t is not None)
        if self._kept is None or self._kept[0] != state:
            with torch.inference_mode(False), torch.no_grad():
                self._kept = (state, _fold(conv, norm))
        return self._kept[1]

    def __deepcopy__(self, memo: Any) -> "Folding":
        return Folding()


def _fold(conv: Convolution, norm: Norm) -> Folded:
    mean, variance = norm.running_mean, norm.running_var
    assert isinstance(mean, Tensor)  # noqa: S101 (for the type checker)
    assert isinstance(variance, Tensor)  # noqa: S101
    scale = norm.weight / torch.sqrt(variance + norm.eps)
    bias = norm.bias - mean * scale
    if conv.bias is not None:
        bias = bias + conv.bias * scale
    return Folded(conv.weight * scale.view(-1, *[1] * (conv.weight.dim() - 1)), bias, [])


def is_frozen(conv: Convolution, norm: Norm) -> bool:
    """Whether the norm can be folded: evaluation mode, no gradient of parameters, no export, no hook on its output."""
    wanted = (torch.is_grad_enabled() and conv.weight.requires_grad) or bool(norm._forward_hooks)
    return not norm.training and not wanted and not torch.compiler.is_exporting()
