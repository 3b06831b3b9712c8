"""Uncertainty scores: functions of the members' probabilities, higher where a prediction is more doubtful.

Each takes probabilities (record, member, class) and returns (record,).
"""

from collections.abc import Callable

import numpy as np

from ecgquorum.metrics.calibration import MIN_PROBABILITY
from ecgquorum.metrics.weighting import Array

Score = Callable[[Array], Array]


def entropy(probabilities: Array) -> Array:
    """Return H(p) = -sum_c p_c ln p_c over the last axis, with 0 ln 0 = 0."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    return np.asarray(-(probabilities * np.log(safe)).sum(axis=-1))


def one_minus_max_probability(member_probs: Array) -> Array:
    """1 - max_c mean_k p_kc: the doubt that the predicted class leaves, from 0 to 1 - 1/C."""
    return np.asarray(1.0 - member_probs.mean(axis=1).max(axis=1))


def predictive_entropy(member_probs: Array) -> Array:
    """H(mean_k p_k) in nats, from 0 to ln C."""
    return entropy(member_probs.mean(axis=1))


def mutual_information(member_probs: Array) -> Array:
    """I = H(mean_k p_k) - mean_k H(p_k) in nats, from 0 to ln min(K, C); it grows with the members' disagreement."""
    return np.asarray(np.maximum(0.0, predictive_entropy(member_probs) - entropy(member_probs).mean(axis=1)))


def pairwise_kl(member_probs: Array) -> Array:
    """Mean of KL(p_i || p_j) = sum_c p_ic ln(p_ic / p_jc) over all ordered pairs of members, in nats; 0 for one member.

    Probabilities below 1e-12 are raised to that inside the logarithm, so it never exceeds ln 1e12 = 27.6.
    """
    n_members = member_probs.shape[1]
    logs = np.log(np.maximum(member_probs, MIN_PROBABILITY))
    divergences = (member_probs[:, :, None] * (logs[:, :, None] - logs[:, None])).sum(axis=(1, 2, 3))
    return np.asarray(np.maximum(0.0, divergences / max(1, n_members * (n_members - 1))))


def variation_ratio(member_probs: Array) -> Array:
    """1 - max_c n_c / K, with n_c members predicting class c: the share that disagrees with the majority."""
    votes = np.eye(member_probs.shape[2])[member_probs.argmax(axis=2)]
    return np.asarray(1.0 - votes.mean(axis=1).max(axis=1))


SCORES: dict[str, Score] = {
    "confidence": one_minus_max_probability,
    "entropy": predictive_entropy,
    "mutual_information": mutual_information,
    "pairwise_kl": pairwise_kl,
    "variation_ratio": variation_ratio,
}
"""Every score by name."""

FITTED_SCORES = ("distance", "risk")
"""Scores that are fitted to an ensemble, and need more than its members' probabilities."""

SCORE_NAMES = (*SCORES, "uncertainty", *FITTED_SCORES)
"""Every score that a policy can use; "uncertainty" is the mutual information, normalised by its range in training."""

DISAGREEMENT_SCORES = frozenset({"mutual_information", "pairwise_kl", "variation_ratio"})
"""Those that compare members, and are 0 for a single one."""
