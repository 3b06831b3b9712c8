"""A part attacked in part: half of it natural, a quarter attacked weakly, some of it more (METHOD, section 8).

Which recording is attacked how strongly is drawn many times, and every ensemble gets the same draws.
"""

import numpy as np

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.evaluation.metric_rows import Answers
from ecgquorum.metrics.measures import Array, Estimate, Flags, Labels, bootstrap, deferral_auc, deferral_curve

SHARES = (0.5, 0.25, 0.15, 0.10)
"""Of the recordings: natural, then at the first three strengths."""

DRAWS = 50


def assignments(n_records: int, seed: int, draws: int = DRAWS) -> Labels:
    """(draw, record): 0 natural, 1 to 3 the strength; the shares are exact up to rounding."""
    rng = numpy_generator(seed, "mixture", n_records)
    edges = np.round(np.cumsum(SHARES) * n_records).astype(int)
    strengths = np.searchsorted(edges, np.arange(n_records), side="right")
    return np.stack([rng.permutation(strengths) for _ in range(draws)])


def mixed(strengths: list[Answers], assigned: Labels) -> tuple[Flags, Array]:
    """Which answers are wrong, and their uncertainty, when each recording comes at its assigned strength."""
    wrong = np.stack([~answers.right for answers in strengths])
    uncertainty = np.stack([answers.uncertainty for answers in strengths])
    records = np.arange(wrong.shape[1])
    return wrong[assigned, records], uncertainty[assigned, records]


def mixed_deferral_auc(strengths: list[Answers], assigned: Labels) -> Estimate:
    """The area under the deferral curve, the mean over all draws; its interval is over recordings."""
    drawn = [mixed(strengths, one) for one in assigned]

    def measure(weights: Array) -> Array:
        return np.asarray(np.mean([deferral_auc(wrong, uncertainty, weights) for wrong, uncertainty in drawn], axis=0))

    return bootstrap(measure, assigned.shape[1])


def mixed_accuracy(strengths: list[Answers], assigned: Labels) -> Estimate:
    """The share of right answers, the mean over all draws."""
    right = np.mean([~mixed(strengths, one)[0] for one in assigned], axis=0)
    return bootstrap(lambda weights: weights @ right / weights.sum(axis=1), assigned.shape[1])


def mixed_deferral_curve(strengths: list[Answers], assigned: Labels) -> tuple[Array, Array]:
    """Shares kept, and the errors left among them as a share of all recordings, the mean over all draws."""
    curves = [deferral_curve(*mixed(strengths, one)) for one in assigned]
    return curves[0][0], np.asarray(np.mean([errors for _, errors in curves], axis=0))
