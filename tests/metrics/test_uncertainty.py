"""Threshold curves are the conditional probabilities they are named for; their areas are the known means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import metrics
from ecgquorum.metrics.uncertainty import N_THRESHOLDS

PREDICTIONS = st.lists(st.tuples(st.booleans(), st.floats(-0.2, 1.3)), min_size=1, max_size=60)


def split(predictions):
    return np.array([correct for correct, _ in predictions]), np.array([u for _, u in predictions])


@given(PREDICTIONS)
def test_curves_are_conditional_probabilities(predictions):
    correct, uncertainty = split(predictions)
    for index, t in enumerate(metrics.thresholds()):
        certain = np.clip(uncertainty, 0, 1) <= t
        cases = (
            (metrics.correct_certain_ratio, correct[certain]),
            (metrics.incorrect_uncertain_ratio, ~certain[~correct]),
            (metrics.uncertainty_accuracy, (correct & certain) | (~correct & ~certain)),
        )
        for curve, events in cases:
            found = curve(correct, uncertainty)[0, index]
            assert np.isnan(found) if len(events) == 0 else found == pytest.approx(events.mean())


@given(PREDICTIONS)
def test_areas_are_means_of_the_clipped_uncertainty(predictions):
    correct, uncertainty = split(predictions)
    clipped = np.clip(uncertainty, 0, 1)
    step = 1.5 / N_THRESHOLDS
    area = metrics.threshold_auc(metrics.uncertainty_accuracy(correct, uncertainty))[0]
    assert area == pytest.approx(np.where(correct, 1 - clipped, clipped).mean(), abs=step)
    if not correct.all():
        area = metrics.threshold_auc(metrics.incorrect_uncertain_ratio(correct, uncertainty))[0]
        assert area == pytest.approx(clipped[~correct].mean(), abs=step)


@given(PREDICTIONS)
def test_the_uncertainty_gap_is_a_difference_of_means(predictions):
    correct, uncertainty = split(predictions)
    found = metrics.uncertainty_gap(correct, uncertainty)[0]
    if correct.all() or not correct.any():
        assert np.isnan(found)
    else:
        assert found == pytest.approx(uncertainty[~correct].mean() - uncertainty[correct].mean())


@given(PREDICTIONS)
def test_undefined_thresholds_are_left_out(predictions):
    """R_cc is not defined below the smallest uncertainty; there it counts neither as 0 nor as 1."""
    correct, uncertainty = split(predictions)
    curve = metrics.correct_certain_ratio(correct, uncertainty)
    x, y = metrics.thresholds()[np.isfinite(curve[0])], curve[0][np.isfinite(curve[0])]
    area = np.trapezoid(y, x) / (x[-1] - x[0]) if len(x) > 1 else y[0]
    assert metrics.threshold_auc(curve)[0] == pytest.approx(area)
    assert metrics.threshold_mean(curve)[0] == pytest.approx(y.mean())
    constant = metrics.correct_certain_ratio(np.ones(len(correct), dtype=bool), uncertainty)
    assert metrics.threshold_auc(constant)[0] == metrics.threshold_mean(constant)[0] == 1


def test_a_curve_without_values_has_no_area():
    curve = metrics.incorrect_uncertain_ratio(np.ones(4, dtype=bool), np.linspace(0, 1, 4))
    assert np.isnan(metrics.threshold_auc(curve)).all() and np.isnan(metrics.threshold_mean(curve)).all()
