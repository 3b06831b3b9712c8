"""Intervals hold their value, match the binomial one, and are not defined where the value is not."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import metrics
from ecgquorum.metrics import Estimate, bootstrap, jackknife


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 3))
def test_an_interval_contains_its_value(correct, seed):
    found = bootstrap(partial(metrics.accuracy, np.array(correct)), len(correct), seed=seed, draws=200)
    assert found.low <= found.value <= found.high


def test_the_interval_of_a_share_is_the_binomial_one():
    found = bootstrap(partial(metrics.accuracy, np.arange(853) < 716), 853)
    spread = 1.96 * np.sqrt(found.value * (1 - found.value) / 853)
    assert found.value - found.low == pytest.approx(spread, rel=0.15)
    assert found.high - found.value == pytest.approx(spread, rel=0.15)


def test_the_jackknife_of_a_mean_has_its_standard_error():
    values = np.random.default_rng(0).normal(size=2000)
    found = jackknife(lambda kept: float(values[kept].mean()), 2000)
    assert found.value == pytest.approx(values.mean())
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * values.std() / np.sqrt(2000), rel=0.4)


def test_a_value_that_is_not_defined_has_no_interval_and_no_warning():
    found = bootstrap(partial(metrics.uncertainty_gap, np.ones(9, dtype=bool), np.linspace(0, 1, 9)), 9)
    assert all(np.isnan(value) for value in (found.value, found.low, found.high)) and not found.is_defined
    assert not jackknife(lambda kept: float("nan"), 40).is_defined


def test_the_same_seed_gives_the_same_interval():
    metric = partial(metrics.augrc, np.arange(200) < 70, np.random.default_rng(0).random(200))
    first, again, other = (bootstrap(metric, 200, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_an_estimate_in_another_unit():
    assert Estimate(0.5, 0.25, 0.75).times(100) == Estimate(50.0, 25.0, 75.0)
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.500 (0.250 to 0.750)"
