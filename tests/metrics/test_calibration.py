"""Calibration errors and proper scores by hand and against scikit-learn; temperature scaling and its fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import brier_score_loss, log_loss

from ecgquorum import metrics
from ecgquorum.metrics.calibration import MAX_TEMPERATURE, MIN_TEMPERATURE, apply_temperature, fit_temperature

SOME_PROBS = arrays(np.float64, (5, 4), elements=st.floats(1e-6, 1.0)).map(lambda p: p / p.sum(axis=1, keepdims=True))


@given(SOME_PROBS, st.floats(MIN_TEMPERATURE, MAX_TEMPERATURE))
def test_scaled_probabilities_are_probabilities_in_the_same_order(probs, temperature):
    found = apply_temperature(probs, temperature)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    order = probs.argsort(axis=1)
    assert (np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= -1e-12).all()
    np.testing.assert_allclose(apply_temperature(probs, 1.0), probs, rtol=1e-9)


def test_temperature_in_closed_form():
    np.testing.assert_allclose(apply_temperature(np.array([[0.8, 0.2]]), 0.5), [[0.64 / 0.68, 0.04 / 0.68]])
    np.testing.assert_allclose(apply_temperature(np.array([[0.8, 0.2]]), 1e6), [[0.5, 0.5]], atol=1e-5)
    np.testing.assert_allclose(apply_temperature(np.array([[1.0, 0.0]]), 1.0), [[1.0, 0.0]], atol=1e-9)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_fit_finds_the_temperature_that_was_applied(temperature):
    """Labels drawn from p, predictions given as p^T: a temperature of T gives p back."""
    rng = np.random.default_rng(0)
    true_probs = apply_temperature(rng.dirichlet(np.ones(4), size=20000), 1.0)
    labels = (rng.random((len(true_probs), 1)) > true_probs.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    given_probs = apply_temperature(true_probs, 1 / temperature)
    assert fit_temperature(given_probs, labels) == pytest.approx(temperature, rel=0.05)


def test_few_or_no_recordings_give_a_temperature_within_bounds():
    sure = np.array([[0.9, 0.1]] * 5)
    assert fit_temperature(sure, np.zeros(5, dtype=int)) == pytest.approx(MIN_TEMPERATURE, rel=0.01)
    assert fit_temperature(sure, np.ones(5, dtype=int)) == pytest.approx(MAX_TEMPERATURE, rel=0.01)
    assert apply_temperature(np.array([[0.5, 0.3, 0.2]]), MIN_TEMPERATURE)[0, 0] < 0.9
    assert fit_temperature(np.zeros((0, 4)), np.zeros(0, dtype=int)) == 1.0


@given(st.integers(0, 5), st.integers(2, 6), st.integers(1, 40))
def test_proper_scores_agree_with_scikit_learn(seed, n_classes, n_records):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(n_classes), size=n_records)
    labels = rng.integers(n_classes, size=n_records)
    expected = brier_score_loss(labels, probs, labels=list(range(n_classes)), scale_by_half=False)
    assert metrics.brier_score(probs, labels)[0] == pytest.approx(expected)
    loss = log_loss(labels, probs, labels=list(range(n_classes)))
    assert metrics.negative_log_likelihood(probs, labels)[0] == pytest.approx(loss)


def test_calibration_error_by_hand_and_in_its_limits():
    probs = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    labels = np.array([0, 1, 0, 1])
    expected = (abs(1 - 1.8) + abs(1 - 0.6) + abs(1 - 0.8)) / 4
    assert metrics.expected_calibration_error(probs, labels)[0] == pytest.approx(expected)
    sure = np.eye(3)[[0, 1, 2, 2]]
    assert metrics.expected_calibration_error(sure, np.array([0, 1, 2, 2]))[0] == 0
    assert metrics.expected_calibration_error(sure, np.array([1, 2, 0, 0]))[0] == 1
    rng = np.random.default_rng(0)
    drawn = rng.dirichlet(np.ones(3), size=20_000)
    labels = (rng.random(20_000)[:, None] > drawn.cumsum(axis=1)).sum(axis=1)
    assert metrics.expected_calibration_error(drawn, labels)[0] < 0.02


def test_an_impossible_label_has_a_finite_log_likelihood():
    assert metrics.negative_log_likelihood(np.array([[1.0, 0.0]]), np.array([1]))[0] == pytest.approx(12 * np.log(10))


def test_adaptive_calibration_error_has_bins_of_equal_size():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(4), size=60), rng.integers(4, size=60)
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    bins = np.split(np.argsort(confidence), 5)
    expected = sum(abs(correct[b].mean() - confidence[b].mean()) for b in bins) / 5
    assert metrics.adaptive_calibration_error(probs, labels, n_bins=5)[0] == pytest.approx(expected)


def test_adaptive_calibration_error_of_equal_confidences_is_their_gap():
    probs, labels = np.array([[0.7, 0.3]] * 10), np.arange(10) // 6
    assert metrics.adaptive_calibration_error(probs, labels)[0] == pytest.approx(0.1)


@given(st.integers(0, 9), st.integers(1, 30))
def test_weights_count_recordings_several_times(seed, n_records):
    rng = np.random.default_rng(seed)
    probs, labels = rng.dirichlet(np.ones(3), size=n_records), rng.integers(3, size=n_records)
    counts = rng.integers(0, 3, size=(1, n_records))
    counts[0, 0] += 1
    repeated = np.repeat(np.arange(n_records), counts[0])
    for metric in (
        metrics.adaptive_calibration_error,
        metrics.expected_calibration_error,
        metrics.negative_log_likelihood,
        metrics.brier_score,
    ):
        np.testing.assert_allclose(
            metric(probs, labels, counts.astype(float)), metric(probs[repeated], labels[repeated]), atol=1e-12
        )


def test_calibration_error_of_a_probability_by_hand():
    probability = np.array([0.05, 0.05, 0.95, 0.95])
    happened = np.array([False, True, True, True])
    np.testing.assert_allclose(metrics.probability_calibration_error(probability, happened), [0.5 * 0.45 + 0.5 * 0.05])
    weights = np.array([[1.0, 0.0, 1.0, 0.0]])
    np.testing.assert_allclose(metrics.probability_calibration_error(probability, happened, weights), [0.05])
