"""Detection of recordings out of distribution: closed-form values and an oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from ecgquorum.metrics import fpr_at_tpr, ood_auroc


def test_a_perfect_score_and_its_opposite():
    low, high = np.arange(20.0), np.arange(20.0) + 100
    assert ood_auroc(low, high) == [1] and fpr_at_tpr(low, high) == [0]
    assert ood_auroc(high, low) == [0] and fpr_at_tpr(high, low) == [1]
    assert ood_auroc(low, low) == [0.5]


def test_the_threshold_accepts_95_per_cent_of_natural_recordings():
    natural = np.arange(100.0)  # the threshold is 94, which accepts 95 of them
    unknown = np.concatenate([np.full(30, 94.0), np.full(70, 94.5)])
    assert fpr_at_tpr(natural, unknown) == pytest.approx([0.3])
    assert fpr_at_tpr(natural, unknown, tpr=0.951) == pytest.approx([1.0])


@given(st.integers(0, 1000))
def test_auroc_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    natural, unknown = rng.integers(0, 9, 30).astype(float), rng.integers(3, 12, 30).astype(float)
    expected = roc_auc_score([0] * 30 + [1] * 30, np.concatenate([natural, unknown]))
    assert ood_auroc(natural, unknown)[0] == pytest.approx(expected)


def test_weights_count_recordings_several_times():
    rng = np.random.default_rng(0)
    natural, unknown = rng.normal(size=12), rng.normal(size=12) + 1
    counts = rng.integers(0, 4, 12)
    for metric in (ood_auroc, fpr_at_tpr):
        weighted = metric(natural, unknown, counts[None].astype(float))
        assert weighted == pytest.approx(metric(np.repeat(natural, counts), np.repeat(unknown, counts)))
