"""A strided convolution of few leads: every patch as a column of one matrix product."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.members.kernels.tiled_convolution import Geometry


class _PatchConvolution(torch.autograd.Function):
    """relu(w * x + b), with a gradient for x alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, geometry: Geometry, silent: list[int]) -> Tensor:
        n_out, kernel = geometry.n_out(x.shape[2]), weight.flatten(1)
        padded = F.pad(x, (geometry.left, geometry.right))
        y = x.new_empty(len(x), len(weight), n_out)
        for record, signal in enumerate(padded):
            patches = signal.unfold(1, geometry.kernel, geometry.step).transpose(1, 2)
            torch.addmm(bias[:, None], kernel, patches.reshape(kernel.shape[1], n_out), out=y[record])
            y[record].relu_()
        y[..., silent] = 0
        ctx.geometry, ctx.shape = geometry, x.shape
        ctx.save_for_backward(y, kernel)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        y, kernel = ctx.saved_tensors
        geometry, (n_records, n_leads, n_samples) = ctx.geometry, ctx.shape
        reach = geometry.step * (y.shape[2] - 1) + 1
        to_x = gradient.new_zeros(n_records, n_leads, n_samples + geometry.left + geometry.right)
        for record in range(n_records):
            patches = (kernel.t() @ (gradient[record] * (y[record] > 0))).view(n_leads, geometry.kernel, -1)
            for tap in range(geometry.kernel):
                to_x[record, :, tap : tap + reach : geometry.step] += patches[:, tap]
        return to_x[..., geometry.left : geometry.left + n_samples], None, None, None, None


def convolve_patches(x: Tensor, weight: Tensor, bias: Tensor, geometry: Geometry, silent: list[int]) -> Tensor:
    """Convolve x (batch, lead, time) and apply ReLU; the weight gets no gradient.

    silent: positions at which the result is set to zero
    """
    y: Tensor = _PatchConvolution.apply(x, weight, bias, geometry, silent)  # type: ignore[no-untyped-call]
    return y
