"""Batch norm whose statistics are over the whole batch, also where ranks have dealt its recordings among themselves.

PyTorch's own `SyncBatchNorm` does so on GPUs alone. A single process runs plain `BatchNorm1d` and `BatchNorm2d`, and so
does evaluation; names and shapes of what is stored are theirs.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.parallel import distributed
from ecgquorum.parallel.distributed import Share


class _Normalised(torch.autograd.Function):
    """y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and variance over all ranks' recordings.

    One message forward (each rank's count, mean and variance) and one back (its sums of the gradient, and of the
    gradient times the normalised value); gamma's and beta's gradients stay each rank's share.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, share: Share
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        variance, mean = torch.var_mean(x, _all_but_channels(x), correction=0)
        n_here = torch.full_like(mean, x.numel() / x.shape[1])
        counts, means, variances = share.stacked(torch.stack([n_here, mean, variance]).double()).unbind(1)
        count = counts.sum(0)
        mean = (counts * means).sum(0) / count
        variance = (counts * (variances + (means - mean).square())).sum(0) / count
        scale = torch.rsqrt(variance + eps).to(x.dtype)
        ctx.share, ctx.count = share, count.to(x.dtype)
        ctx.save_for_backward(x, weight, mean.to(x.dtype), scale)
        ctx.mark_non_differentiable(mean, variance, count)
        y = F.batch_norm(x, mean.to(x.dtype), variance.to(x.dtype), weight, bias, False, 0.0, eps)
        return y, mean, variance, count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> Any:
        x, weight, mean, scale = ctx.saved_tensors
        normal = (x - _along(mean, x)) * _along(scale, x)
        dims = _all_but_channels(x)
        to_weight, to_bias = (gradient * normal).sum(dims), gradient.sum(dims)
        sums = torch.stack([to_weight, to_bias])
        ctx.share.add_up([sums])
        slope, level = sums / ctx.count
        to_x = (gradient - _along(level, x) - normal * _along(slope, x)) * _along(weight * scale, x)
        return to_x, to_weight, to_bias, None, None


def _all_but_channels(x: Tensor) -> list[int]:
    return [0, *range(2, x.ndim)]


def _along(values: Tensor, x: Tensor) -> Tensor:
    """(channel,) as it multiplies x."""
    return values.view(-1, *[1] * (x.ndim - 2))


class _OverRanks(nn.modules.batchnorm._BatchNorm):
    def forward(self, x: Tensor) -> Tensor:
        """(batch, channel, ...) -> the same."""
        share = distributed.shared() if self.training else None
        if share is None:
            return super().forward(x)
        y: Tensor
        y, mean, variance, count = _Normalised.apply(x, self.weight, self.bias, self.eps, share)  # type: ignore[no-untyped-call]
        assert self.running_mean is not None  # noqa: S101 (for the type checker)
        assert self.running_var is not None  # noqa: S101
        assert self.num_batches_tracked is not None  # noqa: S101
        assert self.momentum is not None  # noqa: S101
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(x.dtype), self.momentum)
            self.running_var.lerp_((variance * count / (count - 1)).to(x.dtype), self.momentum)
            self.num_batches_tracked += 1
        return y


class BatchNorm1d(_OverRanks, nn.BatchNorm1d):
    """`nn.BatchNorm1d` over all ranks."""


class BatchNorm2d(_OverRanks, nn.BatchNorm2d):
    """`nn.BatchNorm2d` over all ranks."""
