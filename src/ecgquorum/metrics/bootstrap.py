"""95 % intervals over recordings: bootstrap, paired bootstrap and jackknife."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.metrics.weighting import Array, Flags

_DRAWS = 1000
_DRAWS_AT_ONCE = 100  # bounds the memory that the weights take

Metric = Callable[[Array], Array]
"""Weights (draw, record) -> (draw,), NaN where it is not defined."""


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; all NaN where the value is not defined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    @property
    def is_defined(self) -> bool:
        """Whether there is a value."""
        return math.isfinite(self.value)

    def times(self, factor: float) -> "Estimate":
        """The estimate in another unit."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high)


UNDEFINED = Estimate(math.nan, math.nan, math.nan)


def bootstrap(metric: Metric, n_records: int, *, seed: int = 0, draws: int = _DRAWS) -> Estimate:
    """The metric on all recordings, and its 2.5 % and 97.5 % quantiles on recordings drawn with replacement."""
    return _interval(replicate(metric, n_records, seed=seed, draws=draws))


def replicate(metric: Metric, n_records: int, *, seed: int = 0, draws: int = _DRAWS) -> Array:
    """(1 + draw,): the metric on all recordings, then on each draw of recordings with replacement.

    The same number of recordings and the same seed give the same draws, so that replicates of several metrics or models
    are paired.
    """
    counts = _draw_counts(n_records, seed, draws)
    starts = range(0, draws, _DRAWS_AT_ONCE)
    drawn = (metric(counts[start : start + _DRAWS_AT_ONCE].astype(np.float64)) for start in starts)
    return np.concatenate([metric(np.ones((1, n_records))), *drawn])


def paired_difference(first: Sequence[Array], second: Sequence[Array]) -> Estimate:
    """mean(first) - mean(second), with the interval of the difference on the same draws (paired bootstrap).

    Recordings that are hard for both sides move both alike, so the interval is narrower than that of two separate
    samples. Several entries on a side are several trainings, of which the mean is compared.

    first, second: results of `replicate` with the same recordings and the same seed
    """
    return _interval(np.asarray(np.mean(first, axis=0) - np.mean(second, axis=0)))


def _interval(replicates: Array) -> Estimate:
    """The first replicate and the quantiles of the others; those that are not defined are left out."""
    value, drawn = float(replicates[0]), replicates[1:]
    drawn = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or len(drawn) == 0:
        return Estimate(value, math.nan, math.nan)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(value, float(low), float(high))


@lru_cache(maxsize=1)
def _draw_counts(n_records: int, seed: int, draws: int) -> NDArray[np.uint16]:
    """(draw, record): how often each recording is drawn; the same for every metric of the same recordings."""
    rng = numpy_generator(seed, "bootstrap")
    counts = np.empty((draws, n_records), dtype=np.uint16)
    for start in range(0, draws, _DRAWS_AT_ONCE):
        size = min(_DRAWS_AT_ONCE, draws - start)
        drawn = rng.integers(n_records, size=(size, n_records)) + n_records * np.arange(size)[:, None]
        counts[start : start + size] = np.bincount(drawn.ravel(), minlength=size * n_records).reshape(size, n_records)
    counts.flags.writeable = False
    return counts


def jackknife(metric: Callable[[Flags], float], n_records: int, *, seed: int = 0, blocks: int = 20) -> Estimate:
    """The metric on all recordings, plus and minus 1.96 standard errors from leaving out one block at a time.

    For metrics that repeated recordings would bias, such as the R2 of a fit.

    metric: which recordings to use (record,) -> the value
    """
    value = metric(np.ones(n_records, dtype=bool))
    block_of = numpy_generator(seed, "jackknife").permutation(n_records) % blocks
    replicates = np.array([metric(block_of != block) for block in range(blocks)])
    error = np.sqrt((blocks - 1) * replicates.var()) if np.isfinite(replicates).all() else np.nan
    if not np.isfinite(value) or not np.isfinite(error):
        return UNDEFINED
    return Estimate(value, float(value - 1.96 * error), float(value + 1.96 * error))
