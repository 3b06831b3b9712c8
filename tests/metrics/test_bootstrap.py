"""Intervals hold their value, match the binomial one, and are not defined where the value is not."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ecgquorum import metrics
from ecgquorum.metrics import Estimate, bootstrap, jackknife, paired_difference, replicate


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


def mean_of(values):
    return partial(metrics.weighted_mean, np.asarray(values, dtype=float))


def difference(first, second, **options):
    """The paired difference of means, each over several trainings."""
    sides = [[replicate(mean_of(one), len(one), **options) for one in side] for side in (first, second)]
    return paired_difference(*sides)


def test_a_paired_difference_is_the_interval_of_the_records_differences():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=400)
    first, second = shared + 0.1 * rng.normal(size=400) + 0.05, shared + 0.1 * rng.normal(size=400)
    found = difference([first], [second])
    oracle = stats.bootstrap(
        (first, second), lambda a, b, axis: (a - b).mean(axis=axis), paired=True, method="percentile", rng=0
    ).confidence_interval
    assert found.value == pytest.approx((first - second).mean())
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=0.003)
    separate = [bootstrap(mean_of(values), 400) for values in (first, second)]
    assert separate[1].high > separate[0].low, "intervals of each side overlap although the difference is certain"
    assert found.low > 0


def test_the_paired_interval_of_two_shares_is_that_of_mcnemar():
    only_first, only_second, n = 60, 30, 853
    first, second = np.arange(n) < 500 + only_first, np.arange(n) < 500
    second = second | (np.arange(n) >= n - only_second)
    found = difference([first], [second])
    expected = (only_first - only_second) / n
    spread = 1.96 * np.sqrt((only_first + only_second) / n - expected**2) / np.sqrt(n)
    assert found.value == pytest.approx(expected)
    assert (found.high - found.low) / 2 == pytest.approx(spread, rel=0.1)


def test_several_trainings_on_a_side_are_compared_by_their_mean():
    rng = np.random.default_rng(2)
    a, b, c = rng.random((3, 50))
    found = difference([a, b], [c])
    single = difference([(a + b) / 2], [c])
    assert (found.value, found.low, found.high) == pytest.approx((single.value, single.low, single.high))
    same = difference([a], [a])
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_paired_interval_covers_the_true_difference_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = 0
    for trial in range(200):
        hard = rng.random(120)
        first, second = (hard < 0.8).astype(float), (hard + 0.2 * rng.random(120) < 0.8).astype(float)
        found = difference([first], [second], seed=trial, draws=300)
        covered += found.low <= 0.1 <= found.high
    assert 0.88 <= covered / 200 <= 0.99  # 95 %, with 4 standard errors of 200 trials
