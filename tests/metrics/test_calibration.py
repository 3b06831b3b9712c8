"""Temperature: what it does to probabilities, and that the fit finds the one that made them wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ecgquorum.metrics.calibration import COLDEST, HOTTEST, apply_temperature, fit_temperature

SOME_PROBS = arrays(np.float64, (5, 4), elements=st.floats(1e-6, 1.0)).map(lambda p: p / p.sum(axis=1, keepdims=True))


@given(SOME_PROBS, st.floats(COLDEST, HOTTEST))
def test_tempered_probabilities_are_probabilities_in_the_same_order(probs, temperature):
    found = apply_temperature(probs, temperature)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    order = probs.argsort(axis=1)
    assert (np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= -1e-12).all()
    np.testing.assert_allclose(apply_temperature(probs, 1.0), probs, rtol=1e-9)


def test_closed_form():
    np.testing.assert_allclose(apply_temperature(np.array([[0.8, 0.2]]), 0.5), [[0.64 / 0.68, 0.04 / 0.68]])
    np.testing.assert_allclose(apply_temperature(np.array([[0.8, 0.2]]), 1e6), [[0.5, 0.5]], atol=1e-5)
    np.testing.assert_allclose(apply_temperature(np.array([[1.0, 0.0]]), 1.0), [[1.0, 0.0]], atol=1e-9)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_fit_finds_the_temperature_that_undoes_the_damage(temperature):
    """Labels drawn from p, answers given as p^T: tempering by T gives p back."""
    rng = np.random.default_rng(0)
    truthful = apply_temperature(rng.dirichlet(np.ones(4), size=20000), 1.0)
    labels = (rng.random((len(truthful), 1)) > truthful.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    said = apply_temperature(truthful, 1 / temperature)
    assert fit_temperature(said, labels) == pytest.approx(temperature, rel=0.05)


def test_answers_that_are_always_right_or_wrong_or_not_there_give_no_absurd_temperature():
    sure = np.array([[0.9, 0.1]] * 5)
    assert fit_temperature(sure, np.zeros(5, dtype=int)) == pytest.approx(COLDEST, rel=0.01)
    assert fit_temperature(sure, np.ones(5, dtype=int)) == pytest.approx(HOTTEST, rel=0.01)
    assert apply_temperature(np.array([[0.5, 0.3, 0.2]]), COLDEST)[0, 0] < 0.9
    assert fit_temperature(np.zeros((0, 4)), np.zeros(0, dtype=int)) == 1.0
