"""Intermittent contact: an electrode comes off and on again, many times."""

from dataclasses import dataclass

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.stretches import cover_share, hold_values
from ecgquorum.corruptions.transform import Array, Generator

_SECONDS = (0.05, 0.5)


@dataclass(frozen=True)
class IntermittentContact(Corruption):
    """Short stretches in which the last value is held, on all leads alike."""

    levels = (2.0, 5.0, 10.0, 20.0, 40.0)
    unit = "% of the recording"

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Hold the last value in stretches of 0.05 to 0.5 s."""
        return hold_values(signal, cover_share(rng, signal.shape[1], rate_hz, _SECONDS, self.level / 100))
