"""AUROC and AUPR of error detection agree with scikit-learn, with ties and weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from ecgquorum import metrics

RANKED = st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=40)


@given(RANKED, st.integers(0, 5))
def test_areas_agree_with_scikit_learn(ranked, seed):
    errors, uncertainty = np.array([wrong for wrong, _ in ranked]), np.array([0.1 * score for _, score in ranked])
    weights = np.random.default_rng(seed).integers(0, 3, size=(3, len(errors))).astype(float)
    weights[0] = 1
    auroc, aupr = metrics.error_auroc(errors, uncertainty, weights), metrics.error_aupr(errors, uncertainty, weights)
    for draw, counts in enumerate(weights):
        present = counts > 0
        wrong, score, counted = errors[present], uncertainty[present], counts[present]
        if wrong.all() or not wrong.any():
            assert np.isnan(auroc[draw])
        else:
            assert auroc[draw] == pytest.approx(roc_auc_score(wrong, score, sample_weight=counted))
        if wrong.any():
            assert aupr[draw] == pytest.approx(average_precision_score(wrong, score, sample_weight=counted))
        else:
            assert np.isnan(aupr[draw])


def test_areas_in_their_limits():
    errors = np.arange(20) < 5
    for score, auroc in ((errors * 1.0, 1.0), (errors * -1.0, 0.0), (np.zeros(20), 0.5)):
        assert metrics.error_auroc(errors, score)[0] == auroc
    assert metrics.error_aupr(errors, errors * 1.0)[0] == 1
    assert metrics.error_aupr(errors, np.zeros(20))[0] == pytest.approx(0.25)
