"""Accuracy, F1 and confusion agree with scikit-learn; weights count recordings several times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from ecgquorum import metrics

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


@given(PAIRS)
def test_scores_agree_with_scikit_learn(pairs):
    labels, predicted = np.array(pairs).T
    classes = list(range(4))
    expected = sklearn_metrics.f1_score(labels, predicted, labels=classes, average=None, zero_division=np.nan)
    np.testing.assert_allclose(metrics.f1_score(labels, predicted, 4)[0], expected)
    macro = sklearn_metrics.f1_score(labels, predicted, average="macro")  # over the classes labelled or predicted
    assert metrics.macro_f1(labels, predicted, 4).item() == pytest.approx(macro)
    matrix = sklearn_metrics.confusion_matrix(labels, predicted, labels=classes)
    np.testing.assert_array_equal(metrics.confusion_matrix(labels, predicted, 4), matrix)
    assert metrics.accuracy(labels == predicted).item() == pytest.approx((labels == predicted).mean())


@given(PAIRS, st.integers(0, 3))
def test_a_weight_of_n_equals_the_recording_n_times(pairs, seed):
    labels, predicted = np.array(pairs).T
    counts = np.random.default_rng(seed).integers(0, 3, size=(1, len(labels)))
    counts[0, 0] += 1
    repeated = np.repeat(np.arange(len(labels)), counts[0])
    uncertainty = np.linspace(0, 1, len(labels))
    for metric in (
        lambda y, p, u, w: metrics.macro_f1(y, p, 4, w),
        lambda y, p, u, w: metrics.accuracy(y == p, w),
        lambda y, p, u, w: metrics.threshold_auc(metrics.uncertainty_accuracy(y == p, u, w)),
        lambda y, p, u, w: metrics.uncertainty_gap(y == p, u, w),
        lambda y, p, u, w: metrics.augrc(y != p, u, w),
    ):
        weighted = metric(labels, predicted, uncertainty, counts.astype(float))
        again = metric(labels[repeated], predicted[repeated], uncertainty[repeated], None)
        np.testing.assert_allclose(weighted, again)
