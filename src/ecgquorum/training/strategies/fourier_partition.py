"""Fourier partition: each member sees its own frequency bands."""

from dataclasses import dataclass
from typing import Any, final

from torch import nn

from ecgquorum.errors import TrainingError
from ecgquorum.members import BandFilter, parse_bands
from ecgquorum.recipes.training import PAPER_BANDS, Bands
from ecgquorum.training.strategies.strategy import Strategy


@final
@dataclass(frozen=True)
class FourierPartition(Strategy):
    """Put a band filter in front of each member, in training and in use.

    bands: what the first member sees, then what the others see, in turn: "all", "rings:even", "rings:odd" (every second
           of ten bands of equal width, the paper's two complementary filters) or several (low, high) in Hz
    """

    bands: tuple[Bands, ...] = PAPER_BANDS

    def __post_init__(self) -> None:
        if isinstance(self.bands, str) or not self.bands:
            raise TrainingError(
                f"strategy part: bands: expected an entry for each member in turn, found {self.bands!r}"
            )
        object.__setattr__(self, "bands", tuple(_check_bands(entry) for entry in self.bands))

    def bands_of(self, member: int) -> Bands:
        """Return the bands that a member sees."""
        first, *others = self.bands
        return first if member == 0 or not others else others[(member - 1) % len(others)]

    def describe(self, member: int) -> dict[str, Any] | None:
        """A member that sees all frequencies is trained as without this strategy."""
        bands = self.bands_of(member)
        return None if bands == "all" else {"bands": bands}

    def transform_input(self, member: nn.Module, index: int, rate_hz: float) -> nn.Module:
        """Put the member behind its band filter."""
        bands = parse_bands(self.bands_of(index), rate_hz)
        return member if bands is None else BandFilter(bands, rate_hz).then(member)


def _check_bands(entry: Any) -> Bands:
    if isinstance(entry, str):
        if entry in PAPER_BANDS:
            return entry
    elif isinstance(entry, list | tuple) and entry and all(_is_band(pair) for pair in entry):
        return tuple((float(low), float(high)) for low, high in entry)
    raise TrainingError(
        f"strategy part: bands: expected {', '.join(map(str, PAPER_BANDS))} or a list of [low, high] in Hz with "
        f"0 <= low < high, found {entry!r}"
    )


def _is_band(pair: Any) -> bool:
    numbers = isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(edge, int | float) for edge in pair)
    return numbers and 0 <= pair[0] < pair[1] < float("inf")
