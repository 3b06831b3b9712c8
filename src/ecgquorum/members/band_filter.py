"""Fourier bands: what part of the spectrum a member hears (METHOD: Fourier partition).

Bands are given in Hz, so that a mask made for one recording length or rate means the same at any other.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ecgquorum.errors import RecipeError

N_RINGS = 10
Bands = tuple[tuple[float, float], ...]


class BandFilter(nn.Module):
    """Keeps the bands [low, high) of a signal: x -> irfft(h · rfft(x)), h = 1 inside and 0 outside.

    A high edge at or above half the sampling rate includes it. The mask has no parameters; gradients pass through it.
    """

    edges_hz: Tensor

    def __init__(self, bands: Sequence[tuple[float, float]], rate_hz: float) -> None:
        super().__init__()
        for low, _ in bands:
            if low >= rate_hz / 2:
                raise RecipeError(
                    f"partition.bands: expected bands below half the sampling rate, {rate_hz / 2:g} Hz, found {low:g}"
                )
        self.rate_hz = rate_hz
        self.register_buffer("edges_hz", torch.tensor(bands, dtype=torch.float64), persistent=False)
        self._cached: tuple[int, Tensor] | None = None

    def mask(self, n_samples: int) -> Tensor:
        """(n_samples // 2 + 1,): 1 for the bins of a real Fourier transform that pass, else 0."""
        device = self.edges_hz.device
        hertz = torch.arange(n_samples // 2 + 1, dtype=torch.float64, device=device) * (self.rate_hz / n_samples)
        low, high = self.edges_hz[:, :1], self.edges_hz[:, 1:]
        inside = (hertz >= low) & ((hertz < high) | (high >= self.rate_hz / 2))
        return inside.any(dim=0).to(torch.float32)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, lead, time) -> the same shape."""
        n_samples = x.shape[-1]
        if self._cached is None or self._cached[0] != n_samples or self._cached[1].device != x.device:
            with torch.inference_mode(False):  # or a mask made while predicting could not serve a gradient later
                self._cached = (n_samples, self.mask(n_samples))
        # onnxruntime's float32 DFT is wrong by 0.2 % at 18,000 samples (not a power of two); its float64 DFT is exact
        wide = x.double() if torch.compiler.is_exporting() else x
        filtered: Tensor = torch.fft.irfft(torch.fft.rfft(wide) * self._cached[1].to(wide.dtype), n=n_samples)
        return filtered.to(x.dtype)


def rings(rate_hz: float, first: int, n_rings: int = N_RINGS) -> Bands:
    """Every second of `n_rings` rings of equal width from 0 to half the rate, beginning with ring `first` (0 or 1)."""
    width = rate_hz / 2 / n_rings
    return tuple((i * width, (i + 1) * width) for i in range(first, n_rings, 2))


def bands_from(spec: "str | Bands", rate_hz: float) -> Bands | None:
    """What a recipe says of bands, in Hz; None when the member hears all."""
    if not isinstance(spec, str):
        return spec
    return None if spec == "all" else rings(rate_hz, 0 if spec == "rings:even" else 1)
