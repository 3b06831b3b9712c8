"""Mixed recordings: half of them natural, 25, 15 and 10 % attacked at the three weakest strengths.

Which recording is attacked how strongly is drawn many times; every ensemble gets the same draws.
"""

from collections.abc import Sequence

import numpy as np

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.metrics import Array, Estimate, Flags, Labels, bootstrap, deferral_curve, weighted_mean

SHARES = (0.5, 0.25, 0.15, 0.10)
"""Of the recordings: natural, then at the three weakest strengths."""

DRAWS = 50


def draw_assignments(n_records: int, seed: int, draws: int = DRAWS) -> Labels:
    """(draw, record): 0 for natural, 1 to 3 for the strength; the shares are exact up to rounding."""
    rng = numpy_generator(seed, "mixture", n_records)
    edges = np.round(np.cumsum(SHARES) * n_records).astype(int)
    strengths = np.searchsorted(edges, np.arange(n_records), side="right")
    return np.stack([rng.permutation(strengths) for _ in range(draws)])


def mix_records(strengths: Sequence[Array | Flags], assigned: Labels) -> Array:
    """(draw, record): each recording's value at its assigned strength.

    strengths: (record,) each, natural first · assigned: (draw, record)
    """
    values = np.stack(strengths)
    return np.asarray(values[assigned, np.arange(values.shape[1])])


def mixed_augrc(errors: Sequence[Flags], uncertainty: Sequence[Array], assignments: Labels) -> Estimate:
    """AUGRC, the mean over all draws of strengths; its interval is over recordings.

    AUGRC = sum_ij w_i w_j e_i ([u_i < u_j] + [u_i = u_j] / 2) / (sum_i w_i)^2 is a quadratic form of the weights, whose
    matrix is averaged over the draws once.

    errors, uncertainty: (record,) at each strength, natural first · assignments: (draw, record)
    """
    n_records = assignments.shape[1]
    pairs = np.zeros((n_records, n_records), dtype=np.float32)
    drawn = zip(mix_records(errors, assignments), mix_records(uncertainty, assignments), strict=True)
    for wrong, rank in drawn:
        found = np.flatnonzero(wrong)
        order = rank[found, None]
        pairs[found] += (order < rank) + np.float32(0.5) * (order == rank)
    pairs /= len(assignments)

    def metric(weights: Array) -> Array:
        products = weights.astype(np.float32) @ pairs
        return np.asarray((products * weights).sum(axis=1) / weights.sum(axis=1) ** 2)

    return bootstrap(metric, n_records)


def mixed_accuracy(errors: Sequence[Flags], assignments: Labels) -> Estimate:
    """Accuracy, the mean over all draws."""
    correct = np.asarray(1 - mix_records(errors, assignments).mean(axis=0))
    return bootstrap(lambda weights: weighted_mean(correct, weights), assignments.shape[1])


def mixed_deferral_curve(
    errors: Sequence[Flags], uncertainty: Sequence[Array], assignments: Labels
) -> tuple[Array, Array]:
    """Coverage, and the errors among the recordings kept as a share of all, the mean over all draws."""
    drawn = zip(mix_records(errors, assignments), mix_records(uncertainty, assignments), strict=True)
    curves = [deferral_curve(wrong.astype(bool), rank) for wrong, rank in drawn]
    return curves[0][0], np.asarray(np.mean([remaining for _, remaining in curves], axis=0))
