"""Logistic regression that never falls in any input: weights of 0 or more."""

import numpy as np

from ecgquorum.metrics.weighting import Array, Flags, Labels

RIDGE = 1e-3
"""Of the squared weights; keeps them finite where errors and correct predictions are separable."""


def fit_monotone_logistic(inputs: Array, positive: Flags, weights: Array, ridge: float = RIDGE) -> tuple[float, Array]:
    """Intercept b and weights w >= 0 of P(positive) = 1 / (1 + exp(-b - x w)), with the smallest penalised loss.

    The loss is sum_i v_i (-ln P(y_i)) / sum_i v_i + ridge / 2 |w|^2, found by L-BFGS-B.

    inputs: (record, input) · positive: (record,) · weights: v, (record,)
    """
    from scipy.optimize import minimize  # takes long to import

    shares, signs = weights / weights.sum(), np.where(positive, 1.0, -1.0)

    def loss(parameters: Array) -> tuple[float, Array]:
        margins = signs * (parameters[0] + inputs @ parameters[1:])
        pulls = -shares * signs * _sigmoid(-margins)
        value = shares @ np.logaddexp(0.0, -margins) + ridge / 2 * (parameters[1:] ** 2).sum()
        return float(value), np.concatenate([[pulls.sum()], pulls @ inputs + ridge * parameters[1:]])

    bounds = [(None, None)] + [(0.0, None)] * inputs.shape[1]
    start = np.zeros(1 + inputs.shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-8, "ftol": 1e-13})
    return float(found.x[0]), np.asarray(found.x[1:])


def fit_intercept(logits: Array, positive: Flags) -> float:
    """b for which the mean of 1 / (1 + exp(-b - z)) is the share of positive records: the most likely one for given z.

    A share of 0 or 1 counts as half a record, so that b is finite.

    logits: z = x w, (record,) · positive: (record,)
    """
    from scipy.optimize import brentq  # takes long to import

    share = np.clip(positive.mean(), 0.5 / len(positive), 1 - 0.5 / len(positive))
    limit = 1 + abs(np.log(share / (1 - share)))  # the root is within; 1 more: equal z put it on the edge
    return float(brentq(lambda b: _sigmoid(b + logits).mean() - share, -limit - logits.max(), limit - logits.min()))


def cross_fit_logistic(
    inputs: Array, positive: Flags, weights: Array, folds: Labels, calibrate_on: Flags | None = None
) -> Array:
    """(record,): P(positive) of each record by the model that was fitted on the records of all other folds.

    folds:        (record,); records that belong together have the same
    calibrate_on: (record,); the records that `fit_intercept` fits the intercept on; None: all, with their weights
    """
    found = np.empty(len(inputs))
    for fold in np.unique(folds):
        held = folds == fold
        intercept, coefficients = fit_monotone_logistic(inputs[~held], positive[~held], weights[~held])
        if calibrate_on is not None:
            some = calibrate_on & ~held
            intercept = fit_intercept(inputs[some] @ coefficients, positive[some])
        found[held] = logistic(inputs[held], intercept, coefficients)
    return found


def logistic(inputs: Array, intercept: float, coefficients: Array) -> Array:
    """(record,): 1 / (1 + exp(-b - x w)); inputs: (record, input)."""
    return _sigmoid(intercept + inputs @ coefficients)


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))
