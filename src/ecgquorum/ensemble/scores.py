"""Uncertainty scores of an ensemble by name; defined in `metrics`, since reports need them without any model."""

from ecgquorum.metrics.scores import (
    DISAGREEMENT_SCORES,
    FITTED_SCORES,
    SCORE_NAMES,
    SCORES,
    Score,
    entropy,
    mutual_information,
    one_minus_max_probability,
    pairwise_kl,
    predictive_entropy,
    variation_ratio,
)

__all__ = [
    "DISAGREEMENT_SCORES",
    "FITTED_SCORES",
    "SCORES",
    "SCORE_NAMES",
    "Score",
    "entropy",
    "mutual_information",
    "one_minus_max_probability",
    "pairwise_kl",
    "predictive_entropy",
    "variation_ratio",
]
