"""Layers that depend on the whole batch, for networks of which each rank sees some rows of the batch.

Works for any `nn.Module`: batch norm (PyTorch's `SyncBatchNorm` needs GPUs), dropout, and modules with an attribute
`batch_reduction = "max"`. `F.dropout` and `F.batch_norm` called by a network's own code cannot be found.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from ecgquorum.parallel.distributed import Share

_Forward = Callable[[Tensor], Tensor]


@contextmanager
def shard_network(network: nn.Module, share: Share) -> Iterator[None]:
    """While the block runs, batch layers of `network` in training mode work over the rows of all ranks.

    Modules, their hooks and the names in the state dict stay; only their `forward` is replaced, and restored at the
    end. A single rank changes nothing.
    """
    layers = list(_batch_layers(network, share)) if share.n_ranks > 1 else []
    for module, forward in layers:
        module.__dict__["forward"] = partial(_choose_forward, module, forward, module.forward)
    try:
        yield
    finally:
        for module, _ in layers:
            del module.__dict__["forward"]


def _choose_forward(module: nn.Module, over_ranks: _Forward, own: _Forward, x: Tensor) -> Tensor:
    """In evaluation mode rows do not depend on each other, and there may be others than those of the batch."""
    return over_ranks(x) if module.training else own(x)


def _batch_layers(network: nn.Module, share: Share) -> Iterator[tuple[nn.Module, _Forward]]:
    for module in network.modules():
        if not module.training:
            continue
        if isinstance(module, _BatchNorm) and not isinstance(module, nn.SyncBatchNorm):
            yield module, partial(_normalise, module, share)
        elif isinstance(module, nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d):
            yield module, partial(_drop, module.forward, share)
        elif getattr(module, "batch_reduction", None) == "max":
            yield module, partial(_reduce, module.forward, share)


def _reduce(forward: _Forward, share: Share, x: Tensor) -> Tensor:
    """The elementwise maximum over ranks of what the module gives for each rank's rows."""
    return share.stack(forward(x)).amax(dim=0)


def _drop(forward: _Forward, share: Share, x: Tensor) -> Tensor:
    """Dropout drawn for the whole batch: which values are dropped does not depend on the number of ranks."""
    # random numbers are drawn in the order of memory, so the mask needs the input's
    channels_last = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    ones = torch.ones((share.n_records, *x.shape[1:]), dtype=x.dtype, device=x.device).to(memory_format=layout)
    return x * forward(ones)[share.rows()]


def _normalise(module: _BatchNorm, share: Share, x: Tensor) -> Tensor:
    """Batch norm in training mode, (batch, channel, ...) -> the same; updates the module's running statistics.

    Statistics of half-precision activations are in float32, as those of PyTorch's batch norm.
    """
    precise = torch.promote_types(x.dtype, torch.float32)
    weight = x.new_ones(x.shape[1], dtype=precise) if module.weight is None else module.weight
    bias = x.new_zeros(x.shape[1], dtype=precise) if module.bias is None else module.bias
    y: Tensor
    y, mean, variance, count = _BatchNormOverRanks.apply(x, weight.to(precise), bias.to(precise), module.eps, share)  # type: ignore[no-untyped-call]
    if module.running_mean is not None and module.running_var is not None and module.num_batches_tracked is not None:
        with torch.no_grad():
            module.num_batches_tracked += 1
            momentum = 1 / float(module.num_batches_tracked) if module.momentum is None else module.momentum
            module.running_mean.lerp_(mean.to(module.running_mean.dtype), momentum)
            unbiased = variance * count / (count - 1)
            module.running_var.lerp_(unbiased.to(module.running_var.dtype), momentum)
    return y


class _BatchNormOverRanks(torch.autograd.Function):
    """y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and variance over the rows of all ranks.

    One message forward (each rank's count, mean and variance) and one back (its sums of the gradient, and of the
    gradient times the normalised value); the gradients of gamma and beta stay each rank's share.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, share: Share
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        precise = weight.dtype
        variance, mean = torch.var_mean(x.to(precise), _dims_but_channel(x), correction=0)
        n_here = torch.full_like(mean, x.numel() / x.shape[1])
        counts, means, variances = share.stack(torch.stack([n_here, mean, variance]).double()).unbind(1)
        count = counts.sum(0)
        mean = (counts * means).sum(0) / count
        variance = (counts * (variances + (means - mean).square())).sum(0) / count
        scale = torch.rsqrt(variance + eps).to(precise)
        ctx.share, ctx.count = share, count.to(precise)
        ctx.save_for_backward(x, weight, mean.to(precise), scale)
        ctx.mark_non_differentiable(mean, variance, count)
        y = F.batch_norm(x, mean.to(precise), variance.to(precise), weight, bias, False, 0.0, eps)
        return y, mean, variance, count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> Any:
        x, weight, mean, scale = ctx.saved_tensors
        lowered, gradient = x.dtype, gradient.to(weight.dtype)
        normal = (x - _per_channel(mean, x)) * _per_channel(scale, x)
        dims = _dims_but_channel(x)
        to_weight, to_bias = (gradient * normal).sum(dims), gradient.sum(dims)
        sums = torch.stack([to_weight, to_bias])
        ctx.share.add_up([sums])
        slope, level = sums / ctx.count
        to_x = (gradient - _per_channel(level, x) - normal * _per_channel(slope, x)) * _per_channel(weight * scale, x)
        return to_x.to(lowered), to_weight, to_bias, None, None


def _dims_but_channel(x: Tensor) -> list[int]:
    return [0, *range(2, x.ndim)]


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    """(channel,) in a shape that broadcasts over x."""
    return values.view(-1, *[1] * (x.ndim - 2))
