"""Random stretches of a recording that cover a share of it."""

import numpy as np
from numpy.typing import NDArray

from ecgquorum.corruptions.transform import Array, Generator


def cover_share(
    rng: Generator, n_samples: int, rate_hz: float, seconds: tuple[float, float], share: float
) -> NDArray[np.bool_]:
    """(time,): True inside stretches of random lengths that cover this share of the samples, at least one.

    The generator draws the same stretches for every share: a larger one contains a smaller one.
    """
    covered = np.zeros(n_samples, dtype=bool)
    wanted = min(n_samples, max(1, round(share * n_samples)))
    drawn = np.random.default_rng(int(rng.integers(2**63)))  # so that the caller's next numbers do not depend on it
    n_covered = 0
    while n_covered < wanted:
        start = int(drawn.integers(n_samples))
        length = max(1, round(rate_hz * drawn.uniform(*seconds)))
        free = np.flatnonzero(~covered[start : start + length])[: wanted - n_covered] + start
        covered[free] = True
        n_covered += len(free)
    return covered


def hold_values(signal: Array, lost: NDArray[np.bool_]) -> Array:
    """Hold the last value before each stretch; before the first sample there is the first one after it."""
    if lost.all():
        return np.repeat(signal[:, :1], signal.shape[1], axis=1)
    known = np.where(lost, -1, np.arange(len(lost)))
    before = np.maximum.accumulate(known)
    return signal[:, np.where(before < 0, int(np.argmin(lost)), before)]
