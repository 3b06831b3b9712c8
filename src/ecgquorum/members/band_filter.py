"""Fourier partition: each member sees its own frequency bands.

Bands are given in Hz, so that a filter means the same at any recording length.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ecgquorum.errors import MemberError
from ecgquorum.members.contract import embed, forward_with_features, valid_span

N_RINGS = 10
Bands = tuple[tuple[float, float], ...]


class BandFilter(nn.Module):
    """Keep the bands [low, high) of a signal: x -> irfft(h * rfft(x)), h = 1 inside the bands and 0 outside.

    A high edge at or above half the sampling rate includes it. There are no parameters; gradients pass through. Zeros
    before the first and after the last sample of a recording are padding and stay zero.

    bands:   (low, high) in Hz; for images in cycles per unit of length
    rate_hz: samples per second; for images per unit of length
    dims:    1 for signals (batch, lead, time); 2 for images (batch, channel, height, width), whose bands are rings of
             the radial frequency; images have no padding
    """

    edges_hz: Tensor

    def __init__(self, bands: Sequence[tuple[float, float]], rate_hz: float, dims: int = 1) -> None:
        super().__init__()
        if dims not in (1, 2):
            raise MemberError(f"BandFilter: expected dims of 1 (signals) or 2 (images), found {dims}")
        for low, high in bands:
            if not 0 <= low < high or low >= rate_hz / 2:
                raise MemberError(
                    f"BandFilter: expected bands with 0 <= low < high, low below {rate_hz / 2:g} Hz (half the sampling "
                    f"rate), found {low:g} to {high:g} Hz"
                )
        self.bands: Bands = tuple((float(low), float(high)) for low, high in bands)
        self.rate_hz, self.dims = rate_hz, dims
        self.register_buffer("edges_hz", torch.tensor(self.bands, dtype=torch.float64), persistent=False)
        self._cached: tuple[tuple[int, ...], Tensor] | None = None

    def mask(self, *shape: int) -> Tensor:
        """Return 1 for the bins of `rfftn` over the last `dims` axes that pass, else 0.

        shape: samples along each of these axes; the result is (..., shape[-1] // 2 + 1)
        """
        device = self.edges_hz.device
        axes = [torch.fft.fftfreq(n, dtype=torch.float64, device=device) for n in shape[:-1]]
        axes.append(torch.arange(shape[-1] // 2 + 1, dtype=torch.float64, device=device) / shape[-1])
        squares = axes[-1].square()
        for number, axis in enumerate(reversed(axes[:-1]), start=1):
            squares = squares + axis.square().view(-1, *[1] * number)
        hertz = squares.sqrt() * self.rate_hz
        low, high = self.edges_hz.view(-1, 2, *[1] * len(axes)).unbind(dim=1)
        inside = (hertz >= low) & ((hertz < high) | (high >= self.rate_hz / 2))
        passes: Tensor = inside.any(dim=0).to(torch.float32)
        return passes

    def forward(self, x: Tensor) -> Tensor:
        """Return x with the other frequencies removed, in the same shape."""
        shape = tuple(x.shape[-self.dims :])
        if self._cached is None or self._cached[0] != shape or self._cached[1].device != x.device:
            with torch.inference_mode(False):  # or a mask made while predicting could not serve a gradient later
                self._cached = (shape, self.mask(*shape))
        axes = tuple(range(-self.dims, 0))
        # onnxruntime's float32 DFT is wrong by 0.2 % at 18,000 samples (not a power of two); its float64 DFT is exact
        wide = x.double() if torch.compiler.is_exporting() else x
        kept = torch.fft.rfftn(wide, dim=axes) * self._cached[1].to(wide.dtype)
        filtered: Tensor = torch.fft.irfftn(kept, s=shape, dim=axes).to(x.dtype)
        return filtered * valid_span(x) if self.dims == 1 else filtered

    def then(self, network: nn.Module) -> "FilteredMember":
        """Return a member that sees its input through this filter."""
        return FilteredMember(self, network)

    def extra_repr(self) -> str:
        """Show the bands."""
        return f"{self.bands}, rate_hz={self.rate_hz:g}, dims={self.dims}"


class FilteredMember(nn.Module):
    """A network behind a band filter; attacks differentiate through both."""

    def __init__(self, band_filter: BandFilter, network: nn.Module) -> None:
        super().__init__()
        self.band_filter = band_filter
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, class)."""
        logits: Tensor = self.network(self.band_filter(x))
        return logits

    def embed(self, x: Tensor) -> Tensor:
        """Return the network's features (batch, feature)."""
        return embed(self.network, self.band_filter(x))

    def forward_with_features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the network's logits and features."""
        return forward_with_features(self.network, self.band_filter(x))


def rings(rate_hz: float, first: int, n_rings: int = N_RINGS) -> Bands:
    """Return every second of `n_rings` rings of equal width from 0 to half the rate, starting with `first` (0 or 1)."""
    width = rate_hz / 2 / n_rings
    return tuple((i * width, (i + 1) * width) for i in range(first, n_rings, 2))


def parse_bands(spec: "str | Bands", rate_hz: float) -> Bands | None:
    """Return the bands in Hz that "all", "rings:even", "rings:odd" or a list of (low, high) mean; None for all."""
    if not isinstance(spec, str):
        return spec
    return None if spec == "all" else rings(rate_hz, 0 if spec == "rings:even" else 1)
