"""Beats in a random order, and the stretches between them cut anywhere."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.transform import Array, Generator, SignalTransform

_SECONDS = (0.25, 0.7)


@dataclass(frozen=True)
class ShuffledBeats(SignalTransform):
    """The recording is cut into pieces of 0.25 to 0.7 s, about a beat or less, which are put in a random order."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:  # noqa: ARG002
        """Cut and shuffle."""
        n_samples = signal.shape[1]
        shortest, longest = (max(1, round(seconds * rate_hz)) for seconds in _SECONDS)
        cuts = np.cumsum(rng.integers(shortest, longest + 1, size=n_samples // shortest + 1))
        pieces = np.split(np.arange(n_samples), cuts[cuts < n_samples])
        return signal[:, np.concatenate([pieces[i] for i in rng.permutation(len(pieces))])]
