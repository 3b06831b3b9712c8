"""Conformal prediction sets (adaptive prediction sets, Romano et al. 2020, without randomisation)."""

import numpy as np
from numpy.typing import NDArray

from ecgquorum.metrics.weighting import Array, Flags, Labels


def cumulative_probs(probs: Array) -> Array:
    """(record, class): the probability of all classes that are at least as likely as this one."""
    order = np.argsort(-probs, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(probs, order, axis=1), axis=1)
    result = np.empty_like(probs)
    np.put_along_axis(result, order, reached, axis=1)
    return result


def conformal_quantile(probs: Array, labels: Labels, alpha: float) -> float:
    """The ceil((n + 1)(1 - alpha))-th smallest score of the true classes; 1 where there are too few recordings."""
    n = len(labels)
    rank = int(np.ceil((n + 1) * (1 - alpha)))
    scores = cumulative_probs(probs)[np.arange(n), labels]
    return float(np.sort(scores)[rank - 1]) if rank <= n else 1.0


def prediction_sets(probs: Array, quantile: float | NDArray[np.float64]) -> Flags:
    """(record, class): the most probable classes until they reach the quantile; the most probable always is in it."""
    limit = np.broadcast_to(np.asarray(quantile, dtype=np.float64), (len(probs),))[:, None]
    inside = cumulative_probs(probs) <= limit + 1e-9
    inside[np.arange(len(probs)), probs.argmax(axis=1)] = True
    return np.asarray(inside)
