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
        lambda e, u, w: metrics.augrc(e, u, w),
        lambda e, u, w: metrics.aurc(e, u),
        lambda e, u, w: metrics.risk_at_coverage(e, u, 0.8),
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
