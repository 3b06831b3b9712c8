"""Long convolutions with fewer multiplications: short DFT tiles as batched matrix products.

The signal is cut into tiles of n samples; the real DFT of each tile is multiplied, frequency by frequency, with the
transformed kernel (a matrix product over channels) and transformed back; overlapping tiles give n - K + 1 samples each
(overlap-save). One complex product takes three real ones. Written as y = A^T [(G w) * (B x)], with * a product over
channels, everything is a matrix product, so it runs at the speed of matrix products, and the gradients have the same
form. A dilated kernel is a plain one on every dilation-th sample.

The result is that of `conv1d` up to rounding. Padding may differ on both sides and may be negative. Under autocast the
products are in its lower precision; kernels are transformed, and their gradients summed, in their own.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

_TILE = {8: 24, 16: 48}
"""Kernel sizes for which tiles are faster, and the best tile sizes for them, measured on AVX-512."""

_AT_ONCE = 160  # tiles per matrix product: they should fit in the processor's cache
_FEWEST_CHANNELS, _FEWEST_SAMPLES = 96, 128


class Geometry(NamedTuple):
    """Where a convolution reads: y[t] = sum_k w[k] x[t step + dilation k - left], while x with its padding lasts."""

    kernel: int
    dilation: int
    left: int
    right: int
    step: int = 1

    def n_out(self, n_in: int) -> int:
        """Return the number of output samples."""
        return (n_in + self.left + self.right - self.dilation * (self.kernel - 1) - 1) // self.step + 1

    @property
    def backward(self) -> "Geometry":
        """The geometry of the gradient with respect to the input."""
        reach = self.dilation * (self.kernel - 1)
        return Geometry(self.kernel, self.dilation, reach - self.left, reach - self.right)


class Transform(NamedTuple):
    """The matrices for tiles of n samples and kernels of K taps; R real products a tile.

    kernel G: (R, K) · signal B: (R, n) · back A: (R, n - K + 1)
    """

    kernel: Tensor
    signal: Tensor
    back: Tensor


@cache
def transform(n_tile: int, n_kernel: int, dtype: torch.dtype) -> Transform:
    """Real DFT of a correlation: zero and half frequency take one product each, every other frequency three."""
    n_out = n_tile - n_kernel + 1
    time = torch.arange(n_tile, dtype=torch.float64)
    kernel, signal, back = [], [], []
    for frequency in (0, n_tile // 2) if n_tile % 2 == 0 else (0,):
        wave = torch.cos(2 * math.pi * frequency / n_tile * time)
        kernel.append(wave[:n_kernel])
        signal.append(wave)
        back.append(wave[:n_out] / n_tile)
    for frequency in range(1, (n_tile + 1) // 2):
        angle = 2 * math.pi * frequency / n_tile * time
        real, imaginary = torch.cos(angle), torch.sin(angle)
        # (a + ib)(c + id) from three products: a(c + d), c(b - a), d(a + b); the kernel is conjugated, a correlation
        kernel += [real[:n_kernel], (imaginary - real)[:n_kernel], (real + imaginary)[:n_kernel]]
        signal += [real - imaginary, real, -imaginary]
        out_real, out_imaginary = 2 * real[:n_out] / n_tile, -2 * imaginary[:n_out] / n_tile
        back += [out_real + out_imaginary, out_imaginary, -out_real]
    return Transform(*(torch.stack(rows).to(dtype).contiguous() for rows in (kernel, signal, back)))


def is_worth_tiling(n_in: int, n_out: int, geometry: Geometry, n_samples: int, device: torch.device) -> bool:
    """Whether tiles beat PyTorch's own convolution: many channels, long kernels and signals, on a CPU."""
    return (
        device.type == "cpu"
        and not torch.compiler.is_exporting()
        and geometry.step == 1
        and min(n_in, n_out) >= _FEWEST_CHANNELS
        and geometry.kernel in _TILE
        and n_samples // geometry.dilation >= _FEWEST_SAMPLES
    )


class TiledKernel:
    """The DFT of a kernel (out, in, K), and of the kernel of its input gradient once that is needed."""

    def __init__(self, weight: Tensor, dtype: torch.dtype | None = None) -> None:
        self.weight = weight
        self.n_tile = _TILE[weight.shape[2]]
        self._dtype = dtype or weight.dtype
        self.forward = self._transform(weight)
        self._backward: Tensor | None = None

    @property
    def backward(self) -> Tensor:
        """(R, in, out)."""
        if self._backward is None:
            self._backward = self._transform(self.weight.flip(2).transpose(0, 1))
        return self._backward

    def _transform(self, weight: Tensor) -> Tensor:
        n_out, n_in, n_kernel = weight.shape
        matrix = transform(self.n_tile, n_kernel, weight.dtype).kernel
        return torch.mm(matrix, weight.reshape(-1, n_kernel).t()).view(-1, n_out, n_in).to(self._dtype)


def _tiles(x: Tensor, geometry: Geometry, n_tile: int) -> Tensor:
    """Return the DFT of the tiles of a few recordings, (R, channel, recording x phase x tile)."""
    n_records, n_channels, n_samples = x.shape
    step = n_tile - geometry.kernel + 1
    n_tiles = _n_tiles(geometry, n_samples, step)
    flat = x.new_zeros(n_channels * n_records * geometry.dilation * n_tiles * step + step)
    phases = flat[:-step].view(n_channels, n_records, geometry.dilation, n_tiles * step)
    for phase in range(geometry.dilation):
        _fill(phases[:, :, phase], x, phase - geometry.left, geometry.dilation)
    rows = flat.numel() // step - 1
    matrix = transform(n_tile, geometry.kernel, x.dtype).signal
    tiles = torch.mm(matrix[:, :step], flat[:-step].view(rows, step).t())
    ahead = flat.as_strided((rows, geometry.kernel - 1), (step, 1), step)  # the beginning of the next tile
    tiles.addmm_(matrix[:, step:], ahead.t())
    return tiles.view(-1, n_channels, rows // n_channels)


def _fill(phase: Tensor, x: Tensor, first: int, dilation: int) -> None:
    """Set phase[..., i] = x[..., first + i dilation] where that is inside x."""
    skipped = max(0, -(first // dilation))
    begin = first + skipped * dilation
    count = min(phase.shape[-1] - skipped, -(-(x.shape[-1] - begin) // dilation))
    if count > 0:
        phase[:, :, skipped : skipped + count] = x.transpose(0, 1)[:, :, begin::dilation][:, :, :count]


def _n_tiles(geometry: Geometry, n_samples: int, step: int) -> int:
    """Return the number of tiles for one phase: enough for its outputs, and one more that the last one reads."""
    per_phase = -(-geometry.n_out(n_samples) // geometry.dilation)
    return -(-per_phase // step) + 1


def _group(geometry: Geometry, n_tiles: int) -> int:
    """Return how many recordings to convolve in one matrix product."""
    return max(1, round(_AT_ONCE / (geometry.dilation * n_tiles)))


def _convolve_tiles(
    x: Tensor, kernel: Tensor, geometry: Geometry, n_tile: int, bias: Tensor | None, relu: bool
) -> Tensor:
    """Convolve with a transformed kernel (R, out, in)."""
    n_out, n_samples = geometry.n_out(x.shape[2]), x.shape[2]
    n_channels, step = kernel.shape[1], n_tile - geometry.kernel + 1
    n_tiles = _n_tiles(geometry, n_samples, step)
    back = transform(n_tile, geometry.kernel, x.dtype).back
    y = x.new_empty(len(x), n_channels, n_out)
    group = _group(geometry, n_tiles)
    for start in range(0, len(x), group):
        few = x[start : start + group]
        products = torch.bmm(kernel, _tiles(few, geometry, n_tile))
        found = torch.mm(products.view(len(products), -1).t(), back)
        found = found.view(n_channels, len(few), geometry.dilation, n_tiles * step)
        if bias is not None:
            found += bias.view(-1, 1, 1, 1)
        if relu:
            found.relu_()
        into = y[start : start + group].transpose(0, 1)
        for phase in range(geometry.dilation):
            into[:, :, phase :: geometry.dilation] = found[:, :, phase, : -(-(n_out - phase) // geometry.dilation)]
    return y


def _kernel_gradient(x: Tensor, gradient: Tensor, geometry: Geometry, n_tile: int) -> Tensor:
    """Return the kernel's gradient (out, in, K), at least float32, from the input and the output's gradient."""
    n_channels, step = gradient.shape[1], n_tile - geometry.kernel + 1
    n_tiles = _n_tiles(geometry, x.shape[2], step)
    matrices = transform(n_tile, geometry.kernel, x.dtype)
    precise = torch.promote_types(x.dtype, torch.float32)
    total = x.new_zeros(len(matrices.back), n_channels, x.shape[1], dtype=precise)
    group = _group(geometry, n_tiles)
    for start in range(0, len(x), group):
        few = x[start : start + group]
        phases = gradient.new_zeros(n_channels, len(few), geometry.dilation, n_tiles * step)
        for phase in range(geometry.dilation):
            _fill(phases[:, :, phase], gradient[start : start + group], phase, geometry.dilation)
        tiles = torch.mm(matrices.back, phases.view(-1, step).t()).view(len(total), n_channels, -1)
        others = _tiles(few, geometry, n_tile).transpose(1, 2)
        if x.dtype == precise:
            total.baddbmm_(tiles, others)
        else:
            total += torch.bmm(tiles, others)
    matrix = transform(n_tile, geometry.kernel, precise).kernel
    return torch.mm(total.view(len(total), -1).t(), matrix).view(n_channels, x.shape[1], -1)


class _TiledConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        geometry: Geometry,
        relu: bool,
        tiled: TiledKernel | None,
    ) -> Tensor:
        tiled = tiled or TiledKernel(weight, x.dtype)
        y = _convolve_tiles(x, tiled.forward, geometry, tiled.n_tile, bias, relu)
        ctx.geometry, ctx.relu, ctx.tiled, ctx.n_in = geometry, relu, tiled, x.shape[2]
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weight, y if relu else None)
        if weight.requires_grad:  # the optimiser changes it before the next call
            ctx.tiled = None
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight, y = ctx.saved_tensors
        if ctx.relu:
            gradient = gradient * (y > 0)
        tiled = ctx.tiled or TiledKernel(weight, gradient.dtype)
        to_x = to_weight = to_bias = None
        if ctx.needs_input_grad[0]:
            to_x = _convolve_tiles(gradient, tiled.backward, ctx.geometry.backward, tiled.n_tile, None, relu=False)
        if ctx.needs_input_grad[1]:
            to_weight = _kernel_gradient(x, gradient, ctx.geometry, tiled.n_tile)
        if ctx.needs_input_grad[2]:
            to_bias = gradient.sum(dim=(0, 2))
        return to_x, to_weight, to_bias, None, None, None


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    geometry: Geometry,
    *,
    relu: bool = False,
    tiled: Callable[[], TiledKernel] | None = None,
) -> Tensor:
    """Convolve x (batch, in, time) with weight (out, in, K), in tiles where that is faster, else by `conv1d`.

    relu:  apply ReLU to the result
    tiled: returns the weight's DFT where one is cached
    """
    n_out, n_in, _ = weight.shape
    if is_worth_tiling(n_in, n_out, geometry, x.shape[2], x.device):
        device = x.device.type
        lowered = torch.is_autocast_enabled(device) and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
        if lowered:
            x = x.to(torch.get_autocast_dtype(device))
        kept = tiled() if tiled and not lowered else None  # a cached transform has the weight's precision
        with torch.autocast(device, enabled=False):
            y: Tensor = _TiledConvolution.apply(x, weight, bias, geometry, relu, kept)  # type: ignore[no-untyped-call]
        return y
    padded = F.pad(x, (geometry.left, geometry.right)) if geometry.left != geometry.right or geometry.left < 0 else x
    padding = geometry.left if padded is x else 0
    y = F.conv1d(padded, weight, bias, geometry.step, padding, geometry.dilation)
    return F.relu(y) if relu else y
