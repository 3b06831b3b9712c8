"""Weights of recordings, which every metric takes: how often each recording counts in each bootstrap draw.

Weights are (draw, record). All ones give the plain value; the counts of a draw with replacement give a bootstrap
replicate. Sums over recordings are then matrix products, so a thousand draws of ten thousand recordings take seconds.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Flags = NDArray[np.bool_]


def as_weights(weights: Array | None, n_records: int) -> Array:
    """(draw, record): the weights, or one draw in which every recording counts once."""
    return np.ones((1, n_records)) if weights is None else weights


def weighted_mean(values: Array | Flags, weights: Array | None = None) -> Array:
    """(draw,): sum_i w_i v_i / sum_i w_i."""
    weights = as_weights(weights, len(values))
    return ratio(weights @ values, weights.sum(axis=1))


def ratio(numerator: Array, denominator: Array) -> Array:
    """Element-wise quotient; NaN where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    return np.asarray(np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0))
