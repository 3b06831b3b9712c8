"""95 % intervals over recordings: bootstrap and jackknife."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.metrics.weighting import Array, Flags

_DRAWS = 1000
_DRAWS_AT_ONCE = 100  # bounds the memory that the weights take


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


def bootstrap(metric: Callable[[Array], Array], n_records: int, *, seed: int = 0, draws: int = _DRAWS) -> Estimate:
    """The metric on all recordings, and its 2.5 % and 97.5 % quantiles on recordings drawn with replacement.

    metric: weights (draw, record) -> (draw,), NaN where it is not defined; such draws are left out
    """
    value = float(metric(np.ones((1, n_records)))[0])
    rng = numpy_generator(seed, "bootstrap")
    replicates = []
    for start in range(0, draws, _DRAWS_AT_ONCE):
        size = min(_DRAWS_AT_ONCE, draws - start)
        drawn = rng.integers(n_records, size=(size, n_records)) + n_records * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n_records).reshape(size, n_records)
        replicates.append(metric(counts.astype(np.float64)))
    defined = np.concatenate(replicates)
    defined = defined[np.isfinite(defined)]
    if not np.isfinite(value) or len(defined) == 0:
        return Estimate(value, math.nan, math.nan)
    low, high = np.quantile(defined, [0.025, 0.975])
    return Estimate(value, float(low), float(high))


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
