"""Mixed recordings: half of them natural, 25, 15 and 10 % attacked at the three weakest strengths.

Which recording is attacked how strongly is drawn many times; every ensemble gets the same draws.
"""

import numpy as np

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import Array, Estimate, Flags, Labels, augrc, bootstrap, deferral_curve, weighted_mean

SHARES = (0.5, 0.25, 0.15, 0.10)
"""Of the recordings: natural, then at the three weakest strengths."""

DRAWS = 50


def draw_assignments(n_records: int, seed: int, draws: int = DRAWS) -> Labels:
    """(draw, record): 0 for natural, 1 to 3 for the strength; the shares are exact up to rounding."""
    rng = numpy_generator(seed, "mixture", n_records)
    edges = np.round(np.cumsum(SHARES) * n_records).astype(int)
    strengths = np.searchsorted(edges, np.arange(n_records), side="right")
    return np.stack([rng.permutation(strengths) for _ in range(draws)])


def mix_predictions(strengths: list[LabelledPredictions], assigned: Labels) -> tuple[Flags, Array]:
    """Errors and uncertainty, (record,) each, where every recording comes at its assigned strength."""
    errors = np.stack([~predictions.correct for predictions in strengths])
    uncertainty = np.stack([predictions.uncertainty for predictions in strengths])
    records = np.arange(errors.shape[1])
    return errors[assigned, records], uncertainty[assigned, records]


def mixed_augrc(strengths: list[LabelledPredictions], assignments: Labels) -> Estimate:
    """AUGRC, the mean over all draws; its interval is over recordings."""
    drawn = [mix_predictions(strengths, one) for one in assignments]

    def metric(weights: Array) -> Array:
        return np.asarray(np.mean([augrc(errors, uncertainty, weights) for errors, uncertainty in drawn], axis=0))

    return bootstrap(metric, assignments.shape[1])


def mixed_accuracy(strengths: list[LabelledPredictions], assignments: Labels) -> Estimate:
    """Accuracy, the mean over all draws."""
    correct = np.mean([~mix_predictions(strengths, one)[0] for one in assignments], axis=0)
    return bootstrap(lambda weights: weighted_mean(correct, weights), assignments.shape[1])


def mixed_deferral_curve(strengths: list[LabelledPredictions], assignments: Labels) -> tuple[Array, Array]:
    """Coverage, and the errors among the recordings kept as a share of all, the mean over all draws."""
    curves = [deferral_curve(*mix_predictions(strengths, one)) for one in assignments]
    return curves[0][0], np.asarray(np.mean([errors for _, errors in curves], axis=0))
