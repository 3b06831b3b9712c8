"""Calibration: calibration errors, Brier score, negative log-likelihood, and temperature scaling (Guo et al. 2017)."""

import numpy as np

from ecgquorum.metrics.ranking import cumulate, interpolate
from ecgquorum.metrics.weighting import Array, Flags, Labels, as_weights, weighted_mean

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.25, 4.0
"""Beyond these a temperature depends more on the few recordings it is fitted on than on the model."""

MIN_PROBABILITY = 1e-12
"""Smaller probabilities are raised to this before a logarithm is taken."""


def expected_calibration_error(probs: Array, labels: Labels, weights: Array | None = None, n_bins: int = 15) -> Array:
    """(draw,): ECE = sum_b n_b / n |accuracy_b - confidence_b| over bins of equal width of the confidence.

    probs: (record, class)
    """
    weights = as_weights(weights, len(labels))
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    gaps = weights @ (np.eye(n_bins)[bins] * (correct - confidence)[:, None])
    return np.asarray(np.abs(gaps).sum(axis=1) / weights.sum(axis=1))


def adaptive_calibration_error(probs: Array, labels: Labels, weights: Array | None = None, n_bins: int = 15) -> Array:
    """(draw,): sum_b |accuracy_b - confidence_b| / n_bins over bins of the confidence with equally many recordings.

    A recording on the border of two bins counts in both, in parts; recordings of equal confidence are spread evenly.
    """
    weights = as_weights(weights, len(labels))
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    counts, gaps = cumulate(correct - confidence, confidence, weights)
    edges = [interpolate(counts, gaps, share * counts[:, -1]) for share in np.linspace(0, 1, n_bins + 1)]
    return np.asarray(np.abs(np.diff(edges, axis=0)).sum(axis=0) / counts[:, -1])


def probability_calibration_error(
    probability: Array, happened: Flags, weights: Array | None = None, n_bins: int = 10
) -> Array:
    """(draw,): sum_b n_b / n |mean probability_b - rate_b| over bins of equal width of a predicted probability.

    probability, happened: (record,)
    """
    weights = as_weights(weights, len(happened))
    bins = np.clip(np.ceil(probability * n_bins).astype(int) - 1, 0, n_bins - 1)
    gaps = weights @ (np.eye(n_bins)[bins] * (happened - probability)[:, None])
    return np.asarray(np.abs(gaps).sum(axis=1) / weights.sum(axis=1))


def brier_score(probs: Array, labels: Labels, weights: Array | None = None) -> Array:
    """(draw,): the mean over recordings of sum_c (p_c - y_c)^2, with y the one-hot label."""
    distance = ((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(axis=1)
    return weighted_mean(distance, weights)


def negative_log_likelihood(probs: Array, labels: Labels, weights: Array | None = None) -> Array:
    """(draw,): the mean over recordings of -ln p_label, with probabilities below 1e-12 raised to that."""
    likelihood = probs[np.arange(len(labels)), labels]
    return weighted_mean(-np.log(np.maximum(likelihood, MIN_PROBABILITY)), weights)


def apply_temperature(probs: Array, temperature: float) -> Array:
    """p_c^(1/T) / sum_c p_c^(1/T) over the last axis: flatter for T > 1, sharper for T < 1, in the same order."""
    if temperature == 1:
        return probs
    logs = np.log(np.maximum(probs, MIN_PROBABILITY)) / temperature
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def fit_temperature(probs: Array, labels: Labels) -> float:
    """The temperature with the smallest mean negative log-likelihood of the labels; 1 without recordings.

    probs: (record, class), the mean of the members' · labels: (record,)
    """
    from scipy.optimize import minimize_scalar  # takes long to import

    if len(labels) == 0:
        return 1.0

    def loss(log_temperature: float) -> float:
        return float(negative_log_likelihood(apply_temperature(probs, float(np.exp(log_temperature))), labels)[0])

    bounds = (np.log(MIN_TEMPERATURE), np.log(MAX_TEMPERATURE))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
