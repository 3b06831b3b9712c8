"""Monotone logistic regression: closed forms, and scikit-learn as oracle where no weight would be negative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from ecgquorum.metrics.logistic import cross_fit_logistic, fit_intercept, fit_monotone_logistic, logistic


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


@given(seed=st.integers(0, 100), share=st.floats(0, 1))
def test_the_intercept_makes_the_mean_probability_the_share_of_positives(seed, share):
    rng = np.random.default_rng(seed)
    logits, positive = rng.normal(size=80) * 3, rng.random(80) < share
    found = logistic(logits[:, None], fit_intercept(logits, positive), np.ones(1))
    assert found.mean() == pytest.approx(np.clip(positive.mean(), 0.5 / 80, 1 - 0.5 / 80))


@pytest.mark.parametrize("n_positive", [0, 1, 5, 10])
@pytest.mark.parametrize("logit", [0.0, 0.3, -7.1])
def test_the_intercept_of_equal_logits_by_hand(n_positive, logit):
    share = np.clip(n_positive / 10, 0.05, 0.95)
    found = fit_intercept(np.full(10, logit), np.arange(10) < n_positive)
    assert found == pytest.approx(np.log(share / (1 - share)) - logit)


def test_cross_fitting_can_be_calibrated_on_some_of_the_records():
    """Half of the records have twice as many positives; the order within a fold does not change."""
    rng = np.random.default_rng(0)
    inputs, some = rng.normal(size=(2000, 1)), np.arange(2000) % 2 == 0
    positive = rng.random(2000) < np.where(some, 0.2, 0.4)
    folds = np.arange(2000) // 2 % 5
    plain, found = (cross_fit_logistic(inputs, positive, np.ones(2000), folds, on) for on in (None, some))
    assert found[some].mean() == pytest.approx(positive[some].mean(), abs=0.01)
    assert plain[some].mean() > positive[some].mean() + 0.05
    for fold in range(5):
        np.testing.assert_array_equal(np.argsort(found[folds == fold]), np.argsort(plain[folds == fold]))


def test_cross_fitting_does_not_see_the_fold():
    """Changing the outcomes of a fold does not change its own probabilities."""
    inputs, positive, weights = draw(1, [1.0], 90)
    folds = np.arange(90) % 3
    before = cross_fit_logistic(inputs, positive, weights, folds)
    after = cross_fit_logistic(inputs, np.where(folds == 1, ~positive, positive), weights, folds)
    np.testing.assert_array_equal(before[folds == 1], after[folds == 1])
    assert (before[folds != 1] != after[folds != 1]).all()
