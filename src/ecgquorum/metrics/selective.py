"""Selective classification: errors that remain when the most uncertain recordings are deferred to a person."""

import numpy as np

from ecgquorum.metrics.weighting import Array, Flags, as_weights, ratio


def deferral_curve(errors: Flags, uncertainty: Array) -> tuple[Array, Array]:
    """Coverage from 0 to 1, and the errors among the recordings kept as a share of all: (record + 1,) each.

    Recordings are kept in the order of their uncertainty, the most certain first.
    """
    kept, remaining = _cumulate(errors, uncertainty, np.ones((1, len(errors))))
    return _prepend_zero(kept)[0] / len(errors), _prepend_zero(remaining)[0] / len(errors)


def augrc(errors: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): area under the generalised risk-coverage curve (Traub et al. 2024), which is the deferral curve."""
    kept, remaining = _cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    total = kept[:, -1:]
    return np.asarray(np.trapezoid(_prepend_zero(remaining / total), _prepend_zero(kept / total), axis=1))


def aurc(errors: Flags, uncertainty: Array, weights: Array | None = None) -> Array:
    """(draw,): area under the risk-coverage curve: the mean over coverages of the error rate among those kept."""
    kept, remaining = _cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    steps = np.diff(_prepend_zero(kept), axis=1)
    risk = np.divide(remaining, kept, out=np.zeros_like(kept), where=kept > 0)
    return np.asarray((steps * risk).sum(axis=1) / kept[:, -1])


def risk_at_coverage(errors: Flags, uncertainty: Array, coverage: float, weights: Array | None = None) -> Array:
    """(draw,): the error rate among the most certain share `coverage` of the recordings."""
    kept, remaining = _cumulate(errors, uncertainty, as_weights(weights, len(errors)))
    enough = kept >= coverage * kept[:, -1:] - 1e-9
    first = enough.argmax(axis=1)[:, None]
    return ratio(np.take_along_axis(remaining, first, 1), np.take_along_axis(kept, first, 1))[:, 0]


def _cumulate(errors: Flags, uncertainty: Array, weights: Array) -> tuple[Array, Array]:
    """Cumulative weight and cumulative errors, the most certain first: (draw, record) each.

    Recordings of equal uncertainty could come in any order, so each of them counts as their mean.
    """
    order = np.argsort(uncertainty, kind="stable")
    ordered = weights[:, order]
    remaining = ordered * errors[order]
    starts = np.flatnonzero(np.diff(uncertainty[order], prepend=-np.inf))
    if len(starts) < len(order):
        sizes = np.diff(starts, append=len(order))
        shares = ratio(np.add.reduceat(remaining, starts, axis=1), np.add.reduceat(ordered, starts, axis=1))
        remaining = np.nan_to_num(np.repeat(shares, sizes, axis=1)) * ordered
    return np.cumsum(ordered, axis=1), np.cumsum(remaining, axis=1)


def _prepend_zero(curve: Array) -> Array:
    return np.concatenate([np.zeros((len(curve), 1)), curve], axis=1)
