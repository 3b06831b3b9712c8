"""Monotone logistic regression: closed forms, and scikit-learn as oracle where no weight would be negative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from ecgquorum.metrics.logistic import cross_fit_logistic, fit_monotone_logistic, logistic


def draw(seed, coefficients, n=400):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, len(coefficients)))
    return inputs, rng.random(n) < logistic(inputs, -0.5, np.array(coefficients)), rng.uniform(0.5, 2, n)


@given(seed=st.integers(0, 100))
def test_positive_weights_are_those_of_scikit_learn(seed):
    inputs, positive, weights = draw(seed, [1.0, 0.7])
    ridge = 0.01
    oracle = LogisticRegression(C=1 / (ridge * weights.sum()), tol=1e-10, max_iter=1000)
    oracle.fit(inputs, positive, sample_weight=weights)
    intercept, found = fit_monotone_logistic(inputs, positive, weights, ridge)
    np.testing.assert_allclose(found, oracle.coef_[0], atol=1e-4)
    assert intercept == pytest.approx(oracle.intercept_[0], abs=1e-4)
    np.testing.assert_allclose(logistic(inputs, intercept, found), oracle.predict_proba(inputs)[:, 1], atol=1e-4)


def test_one_binary_input_by_hand():
    """Without a penalty the model gives the share of positives in each group."""
    inputs = np.array([[0.0]] * 10 + [[1.0]] * 10)
    positive = np.array([True] * 2 + [False] * 8 + [True] * 7 + [False] * 3)
    intercept, (weight,) = fit_monotone_logistic(inputs, positive, np.ones(20), ridge=0.0)
    assert intercept == pytest.approx(np.log(2 / 8), abs=1e-4)
    assert intercept + weight == pytest.approx(np.log(7 / 3), abs=1e-4)


@given(seed=st.integers(0, 100), coefficients=st.lists(st.floats(-2, 2), min_size=1, max_size=3))
def test_no_weight_is_negative_and_probability_never_falls_in_an_input(seed, coefficients):
    inputs, positive, weights = draw(seed, coefficients, 100)
    intercept, found = fit_monotone_logistic(inputs, positive, weights)
    assert (found >= 0).all()
    for column in range(inputs.shape[1]):
        raised = inputs.copy()
        raised[:, column] += 0.5
        assert (logistic(raised, intercept, found) >= logistic(inputs, intercept, found)).all()


def test_separable_records_have_finite_weights():
    inputs = np.linspace(-1, 1, 20)[:, None]
    _, (weight,) = fit_monotone_logistic(inputs, inputs[:, 0] > 0, np.ones(20))
    assert 1 < weight < 100


def test_cross_fitting_does_not_see_the_fold():
    """Changing the outcomes of a fold does not change its own probabilities."""
    inputs, positive, weights = draw(1, [1.0], 90)
    folds = np.arange(90) % 3
    before = cross_fit_logistic(inputs, positive, weights, folds)
    after = cross_fit_logistic(inputs, np.where(folds == 1, ~positive, positive), weights, folds)
    np.testing.assert_array_equal(before[folds == 1], after[folds == 1])
    assert (before[folds != 1] != after[folds != 1]).all()
