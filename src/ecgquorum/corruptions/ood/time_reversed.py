"""Time reversed."""

from dataclasses import dataclass

from ecgquorum.corruptions.transform import Array, Generator, SignalTransform


@dataclass(frozen=True)
class TimeReversed(SignalTransform):
    """The recording runs backwards: the T wave comes before its QRS complex, the P wave after it."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Reverse the time."""
        return signal[:, ::-1].copy()
