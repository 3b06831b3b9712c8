"""Cumulative sums over ranked recordings. Recordings of equal rank could come in any order, so they count as one step.

Between two steps a curve is linear, which is its mean over all orders of the recordings of equal rank.
"""

import numpy as np

from ecgquorum.metrics.weighting import Array, Flags


def cumulate(values: Array | Flags, rank: Array, weights: Array) -> tuple[Array, Array]:
    """Cumulative weight and cumulative weighted values, the lowest rank first: (draw, step + 1) each, starting at 0."""
    order = np.argsort(rank, kind="stable")
    ranked, ordered = rank[order], weights[:, order]
    steps = [ordered, ordered * values[order]]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    if len(starts) < len(order):
        steps = [np.add.reduceat(one, starts, axis=1) for one in steps]
    total, summed = (np.zeros((one.shape[0], one.shape[1] + 1)) for one in steps)
    for one, sums in zip(steps, (total, summed), strict=True):
        np.cumsum(one, axis=1, out=sums[:, 1:])
    return total, summed


def interpolate(x: Array, y: Array, at: Array) -> Array:
    """(draw,): y of each draw at x = `at` (draw,), linear between its steps; x rises within a draw."""
    end = np.clip((x < at[:, None]).sum(axis=1), 1, x.shape[1] - 1)
    rows = np.arange(len(x))
    x0, x1, y0, y1 = x[rows, end - 1], x[rows, end], y[rows, end - 1], y[rows, end]
    share = np.divide(at - x0, x1 - x0, out=np.zeros(len(x)), where=x1 > x0)
    return np.asarray(y0 + share * (y1 - y0))
