import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, f1_score

from ecgquorum.evaluation import bootstrapped, measures

ANSWERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


@given(ANSWERS)
def test_scores_agree_with_scikit_learn(pairs):
    truth, answer = np.array(pairs).T
    everyone = np.arange(len(truth))[None]
    labels = list(range(4))
    expected = f1_score(truth, answer, labels=labels, average=None, zero_division=0)
    np.testing.assert_allclose(measures.class_f1(truth, answer, 4, everyone)[0], expected)
    np.testing.assert_allclose(measures.macro_f1(truth, answer, 4, everyone)[0], expected.mean())
    np.testing.assert_array_equal(measures.confusion(truth, answer, 4), confusion_matrix(truth, answer, labels=labels))
    assert measures.accuracy(truth, answer, everyone)[0] == pytest.approx((truth == answer).mean())


@given(ANSWERS, st.integers(0, 3))
def test_an_interval_holds_its_value(pairs, seed):
    truth, answer = np.array(pairs).T
    found = bootstrapped(lambda draws: measures.accuracy(truth, answer, draws), len(truth), seed=seed, draws=200)
    assert found.low <= found.value <= found.high


def test_the_interval_of_a_share_is_the_binomial_one():
    right = np.arange(853) < 716
    found = bootstrapped(lambda draws: right[draws].mean(axis=1), 853)
    spread = 1.96 * np.sqrt(found.value * (1 - found.value) / 853)
    assert found.value - found.low == pytest.approx(spread, rel=0.15)
    assert found.high - found.value == pytest.approx(spread, rel=0.15)


def test_deferral_by_hand():
    wrong = np.array([True, False, False, True])
    kept, errors = measures.deferral_curve(wrong, np.array([0.9, 0.1, 0.2, 0.3]))
    np.testing.assert_allclose(kept, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(errors, [0, 0, 0, 0.25, 0.5])


@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_perfect_uncertainty_defers_all_errors_first(wrong):
    wrong = np.array(wrong)
    _, errors = measures.deferral_curve(wrong, wrong.astype(float))
    assert errors[len(wrong) - wrong.sum()] == 0
    assert errors[-1] == pytest.approx(wrong.mean())
    assert (np.diff(errors) >= 0).all()
