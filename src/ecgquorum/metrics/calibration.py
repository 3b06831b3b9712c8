"""Temperature: one number, fitted on the tune part, that brings confidence in line with how often it is right."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COLDEST, HOTTEST = 0.25, 4.0
"""Beyond these a temperature says more of the few recordings it is fitted on than of the model."""

LEAST = 1e-12
"""No probability is taken to be smaller."""


def apply_temperature(probs: Array, temperature: float) -> Array:
    """p_c^(1/T) / sum_c p_c^(1/T) over the last axis: flatter for T > 1, sharper below, the same order always."""
    if temperature == 1:
        return probs
    logs = np.log(np.maximum(probs, LEAST)) / temperature
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def fit_temperature(probs: Array, truth: NDArray[np.int64]) -> float:
    """The temperature under which the truth is likeliest; 1 where there is nothing to fit it on.

    probs: (record, class), the mean of the members' · truth: (record,)
    """
    from scipy.optimize import minimize_scalar  # half a second to import; scorecards and cards do without

    if len(truth) == 0:
        return 1.0

    def surprise(log_temperature: float) -> float:
        chosen = apply_temperature(probs, float(np.exp(log_temperature)))[np.arange(len(truth)), truth]
        return float(-np.log(np.maximum(chosen, LEAST)).mean())

    found = minimize_scalar(surprise, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(found.x))
