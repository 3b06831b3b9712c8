"""Deferral: values by hand, closed forms, and independence of the order of ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import metrics


@given(st.permutations(range(12)))
def test_the_order_of_equally_uncertain_recordings_does_not_matter(order):
    order = np.array(order)
    errors, uncertainty = np.arange(12) % 3 == 0, np.repeat([0.1, 0.5, 0.5, 0.9], 3)
    weights = np.random.default_rng(0).integers(0, 3, size=(4, 12)).astype(float)
    for metric in (
        metrics.augrc,
        metrics.aurc,
        metrics.error_auroc,
        metrics.error_aupr,
        lambda e, u, w: metrics.risk_at_coverage(e, u, 0.8, w),
        lambda e, u, w: metrics.coverage_at_risk(e, u, 0.3, w),
        lambda e, u, w: metrics.errors_caught(e, u, 0.3, w),
        lambda e, u, w: metrics.deferral_curve(e, u)[1],
    ):
        expected = metric(errors, uncertainty, weights)
        np.testing.assert_allclose(metric(errors[order], uncertainty[order], weights[:, order]), expected)


def test_deferral_of_equally_uncertain_recordings_is_a_straight_line():
    errors = np.arange(40) % 4 == 0
    kept, remaining = metrics.deferral_curve(errors, np.zeros(40))
    np.testing.assert_allclose(remaining, kept / 4)
    assert metrics.augrc(errors, np.zeros(40))[0] == pytest.approx(1 / 8)


def test_deferral_by_hand():
    errors = np.array([True, False, False, True])
    uncertainty = np.array([0.9, 0.1, 0.2, 0.3])
    kept, remaining = metrics.deferral_curve(errors, uncertainty)
    np.testing.assert_allclose(kept, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(remaining, [0, 0, 0, 0.25, 0.5])
    assert metrics.augrc(errors, uncertainty)[0] == pytest.approx(np.trapezoid(remaining, kept))
    assert metrics.aurc(errors, uncertainty)[0] == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    for coverage, risk in ((0.5, 0), (0.75, 1 / 3), (1.0, 0.5), (0.6, 1 / 3)):
        assert metrics.risk_at_coverage(errors, uncertainty, coverage)[0] == pytest.approx(risk)
    for risk, coverage in ((0.0, 0.5), (0.3, 0.5), (1 / 3, 0.75), (0.4, 0.75), (0.5, 1.0)):
        assert metrics.coverage_at_risk(errors, uncertainty, risk)[0] == pytest.approx(coverage)
    for budget, caught in ((0.0, 0.0), (0.125, 0.25), (0.25, 0.5), (0.5, 1.0), (1.0, 1.0)):
        assert metrics.errors_caught(errors, uncertainty, budget)[0] == pytest.approx(caught)


@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_perfect_uncertainty_defers_all_errors_first(errors):
    errors = np.array(errors)
    _, remaining = metrics.deferral_curve(errors, errors.astype(float))
    assert remaining[len(errors) - errors.sum()] == 0
    assert remaining[-1] == pytest.approx(errors.mean())
    assert (np.diff(remaining) >= 0).all()
    best, worst = (metrics.augrc(errors, u)[0] for u in (errors * 1.0, errors * -1.0))
    assert best <= worst + 1e-12
    assert best == pytest.approx(errors.mean() ** 2 / 2)


RANKED = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=30)


def split(ranked):
    return np.array([wrong for wrong, _ in ranked]), np.array([float(score) for _, score in ranked])


@given(RANKED)
def test_augrc_follows_from_the_auroc_of_error_detection(ranked):
    """AUGRC = (1 - AUROC) e (1 - e) + e^2 / 2 with the error rate e (Traub et al. 2024)."""
    errors, uncertainty = split(ranked)
    rate = errors.mean()
    ranking = np.nan_to_num(1 - metrics.error_auroc(errors, uncertainty)[0]) * rate * (1 - rate)
    assert metrics.augrc(errors, uncertainty)[0] == pytest.approx(ranking + rate**2 / 2)


@given(st.permutations(range(7)), st.integers(0, 3))
def test_ties_count_as_the_mean_over_their_orders(order, n_errors):
    """With a very small step between tied recordings, the mean over all cyclic shifts of which come first."""
    errors, uncertainty = np.arange(7) < n_errors, np.array([0.0, 0, 1, 1, 1, 2, 2])[order]
    middle = np.flatnonzero(uncertainty == 1)
    for metric in (metrics.aurc, metrics.augrc, lambda e, u: metrics.errors_caught(e, u, 3 / 7)):
        broken = []
        for first in range(3):
            apart = uncertainty.copy()
            apart[middle] += 0.01 * np.roll(np.arange(3), first)
            broken.append(metric(errors, apart)[0])
        if n_errors:
            assert metric(errors, uncertainty)[0] == pytest.approx(np.mean(broken))


@given(RANKED, st.integers(0, 3))
def test_a_weight_of_n_equals_the_recording_n_times(ranked, seed):
    errors, uncertainty = split(ranked)
    counts = np.random.default_rng(seed).integers(0, 4, size=(1, len(errors)))
    counts[0, 0] += 1
    repeated = np.repeat(np.arange(len(errors)), counts[0])
    for metric in (
        metrics.aurc,
        metrics.augrc,
        metrics.error_auroc,
        metrics.error_aupr,
        lambda e, u, w=None: metrics.risk_at_coverage(e, u, 0.7, w),
        lambda e, u, w=None: metrics.coverage_at_risk(e, u, 0.2, w),
        lambda e, u, w=None: metrics.errors_caught(e, u, 0.1, w),
    ):
        weighted = metric(errors, uncertainty, counts.astype(float))
        np.testing.assert_allclose(weighted, metric(errors[repeated], uncertainty[repeated]), atol=1e-12)


@given(RANKED, st.floats(0, 1))
def test_coverage_at_risk_is_the_largest_that_keeps_the_risk(ranked, risk):
    errors, uncertainty = split(ranked)
    found = metrics.coverage_at_risk(errors, uncertainty, risk)[0]
    at = [metrics.risk_at_coverage(errors, uncertainty, k / len(errors))[0] for k in range(1, len(errors) + 1)]
    kept = [k for k, one in enumerate(at, start=1) if one <= risk + 1e-9]
    assert found == pytest.approx(max(kept, default=0) / len(errors))


def test_a_score_that_knows_nothing_catches_errors_in_proportion():
    errors, same = np.arange(50) % 5 == 0, np.zeros(50)
    for budget in (0.1, 0.33, 0.9):
        assert metrics.errors_caught(errors, same, budget)[0] == pytest.approx(budget)
    assert metrics.aurc(errors, same)[0] == pytest.approx(0.2)
    assert np.isnan(metrics.errors_caught(np.zeros(5, dtype=bool), np.zeros(5), 0.1)[0])
