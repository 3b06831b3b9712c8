"""Measures: values by hand, identities of the method, peers as oracles, and honest intervals."""

import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, confusion_matrix, f1_score

from ecgquorum.evaluation import bootstrap
from ecgquorum.metrics import measures

ANSWERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)
JUDGED = st.lists(st.tuples(st.booleans(), st.floats(-0.2, 1.3)), min_size=1, max_size=60)


def plain(measure, n_records):
    """The measure on every recording once."""
    return measure(np.ones((1, n_records)))[0]


def split(judged):
    return np.array([right for right, _ in judged]), np.array([uncertainty for _, uncertainty in judged])


@given(ANSWERS)
def test_scores_agree_with_scikit_learn(pairs):
    truth, answer = np.array(pairs).T
    labels = list(range(4))
    expected = f1_score(truth, answer, labels=labels, average=None, zero_division=np.nan)
    np.testing.assert_allclose(plain(partial(measures.class_f1, truth, answer, 4), len(truth)), expected)
    macro = f1_score(truth, answer, average="macro")  # over the classes that are there or named
    assert plain(partial(measures.macro_f1, truth, answer, 4), len(truth)) == pytest.approx(macro)
    np.testing.assert_array_equal(measures.confusion(truth, answer, 4), confusion_matrix(truth, answer, labels=labels))
    assert plain(partial(measures.accuracy, truth == answer), len(truth)) == pytest.approx((truth == answer).mean())


@given(ANSWERS, st.integers(0, 3))
def test_weights_count_recordings_several_times(pairs, seed):
    truth, answer = np.array(pairs).T
    counts = np.random.default_rng(seed).integers(0, 3, size=(1, len(truth)))
    counts[0, 0] += 1
    repeated = np.repeat(np.arange(len(truth)), counts[0])
    uncertainty = np.linspace(0, 1, len(truth))
    for measure in (
        lambda t, a, u: partial(measures.macro_f1, t, a, 4),
        lambda t, a, u: partial(measures.accuracy, t == a),
        lambda t, a, u: lambda w: measures.threshold_auc(measures.uncertainty_accuracy(t == a, u, w)),
        lambda t, a, u: partial(measures.uncertainty_gap, t == a, u),
    ):
        weighted = measure(truth, answer, uncertainty)(counts.astype(float))[0]
        again = plain(measure(truth[repeated], answer[repeated], uncertainty[repeated]), len(repeated))
        np.testing.assert_allclose(weighted, again)


@given(JUDGED)
def test_threshold_curves_are_what_their_words_say(judged):
    right, uncertainty = split(judged)
    weights = np.ones((1, len(right)))
    for index, t in enumerate(measures.thresholds()):
        certain = np.clip(uncertainty, 0, 1) <= t
        cells = (
            (measures.correct_certain_ratio, right[certain]),
            (measures.incorrect_uncertain_ratio, ~certain[~right]),
            (measures.uncertainty_accuracy, (right & certain) | (~right & ~certain)),
        )
        for curve, cases in cells:
            found = curve(right, uncertainty, weights)[0, index]
            assert np.isnan(found) if len(cases) == 0 else found == pytest.approx(cases.mean())


@given(JUDGED)
def test_areas_are_the_means_that_the_method_says(judged):
    right, uncertainty = split(judged)
    clipped = np.clip(uncertainty, 0, 1)
    weights = np.ones((1, len(right)))
    step = 1.5 / measures.N_THRESHOLDS
    area = measures.threshold_auc(measures.uncertainty_accuracy(right, uncertainty, weights))[0]
    assert area == pytest.approx(np.where(right, 1 - clipped, clipped).mean(), abs=step)
    if not right.all():
        area = measures.threshold_auc(measures.incorrect_uncertain_ratio(right, uncertainty, weights))[0]
        assert area == pytest.approx(clipped[~right].mean(), abs=step)


@given(JUDGED)
def test_the_uncertainty_gap_is_a_difference_of_means(judged):
    right, uncertainty = split(judged)
    found = plain(partial(measures.uncertainty_gap, right, uncertainty), len(right))
    if right.all() or not right.any():
        assert np.isnan(found)
    else:
        assert found == pytest.approx(uncertainty[~right].mean() - uncertainty[right].mean())


@given(st.permutations(range(12)))
def test_the_order_of_equally_uncertain_recordings_does_not_matter(order):
    order = np.array(order)
    wrong, uncertainty = np.arange(12) % 3 == 0, np.repeat([0.1, 0.5, 0.5, 0.9], 3)
    weights = np.random.default_rng(0).integers(0, 3, size=(4, 12)).astype(float)
    measured = (
        lambda r, u, w: measures.deferral_auc(r, u, w),
        lambda r, u, w: measures.aurc(r, u, np.ones((1, 12))),
        lambda r, u, w: measures.risk_at_coverage(r, u, 0.8, np.ones((1, 12))),
        lambda r, u, w: measures.deferral_curve(r, u)[1],
    )
    for measure in measured:
        expected = measure(wrong, uncertainty, weights)
        np.testing.assert_allclose(measure(wrong[order], uncertainty[order], weights[:, order]), expected)


def test_deferral_of_the_equally_uncertain_is_a_straight_line():
    wrong = np.arange(40) % 4 == 0
    kept, errors = measures.deferral_curve(wrong, np.zeros(40))
    np.testing.assert_allclose(errors, kept / 4)
    assert measures.deferral_auc(wrong, np.zeros(40), np.ones((1, 40)))[0] == pytest.approx(1 / 8)


def test_deferral_by_hand():
    wrong = np.array([True, False, False, True])
    uncertainty = np.array([0.9, 0.1, 0.2, 0.3])
    kept, errors = measures.deferral_curve(wrong, uncertainty)
    np.testing.assert_allclose(kept, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(errors, [0, 0, 0, 0.25, 0.5])
    assert plain(partial(measures.deferral_auc, wrong, uncertainty), 4) == pytest.approx(np.trapezoid(errors, kept))
    assert plain(partial(measures.aurc, wrong, uncertainty), 4) == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    for coverage, risk in ((0.5, 0), (0.75, 1 / 3), (1.0, 0.5), (0.6, 1 / 3)):
        found = plain(partial(measures.risk_at_coverage, wrong, uncertainty, coverage), 4)
        assert found == pytest.approx(risk)


@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_perfect_uncertainty_defers_all_errors_first(wrong):
    wrong = np.array(wrong)
    _, errors = measures.deferral_curve(wrong, wrong.astype(float))
    assert errors[len(wrong) - wrong.sum()] == 0
    assert errors[-1] == pytest.approx(wrong.mean())
    assert (np.diff(errors) >= 0).all()
    best, worst = (plain(partial(measures.deferral_auc, wrong, u), len(wrong)) for u in (wrong * 1.0, wrong * -1.0))
    assert best <= worst + 1e-12
    assert best == pytest.approx(wrong.mean() ** 2 / 2)


@given(st.integers(0, 5), st.integers(2, 6), st.integers(1, 40))
def test_brier_agrees_with_scikit_learn(seed, n_classes, n_records):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(n_classes), size=n_records)
    truth = rng.integers(n_classes, size=n_records)
    found = plain(partial(measures.brier, probs, truth), n_records)
    expected = brier_score_loss(truth, probs, labels=list(range(n_classes)), scale_by_half=False)
    assert found == pytest.approx(expected)


def test_calibration_error_by_hand_and_in_its_limits():
    probs = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    truth = np.array([0, 1, 0, 1])
    expected = (abs(1 - 1.8) + abs(1 - 0.6) + abs(1 - 0.8)) / 4
    assert plain(partial(measures.expected_calibration_error, probs, truth), 4) == pytest.approx(expected)
    sure = np.eye(3)[[0, 1, 2, 2]]
    assert plain(partial(measures.expected_calibration_error, sure, np.array([0, 1, 2, 2])), 4) == 0
    assert plain(partial(measures.expected_calibration_error, sure, np.array([1, 2, 0, 0])), 4) == 1
    rng = np.random.default_rng(0)
    drawn = rng.dirichlet(np.ones(3), size=20_000)
    honest = (rng.random(20_000)[:, None] > drawn.cumsum(axis=1)).sum(axis=1)
    assert plain(partial(measures.expected_calibration_error, drawn, honest), 20_000) < 0.02


@given(ANSWERS, st.integers(0, 3))
def test_an_interval_holds_its_value(pairs, seed):
    truth, answer = np.array(pairs).T
    found = bootstrap(partial(measures.accuracy, truth == answer), len(truth), seed=seed, draws=200)
    assert found.low <= found.value <= found.high


def test_the_interval_of_a_share_is_the_binomial_one():
    found = bootstrap(partial(measures.accuracy, np.arange(853) < 716), 853)
    spread = 1.96 * np.sqrt(found.value * (1 - found.value) / 853)
    assert found.value - found.low == pytest.approx(spread, rel=0.15)
    assert found.high - found.value == pytest.approx(spread, rel=0.15)


def test_what_is_not_defined_has_no_interval_and_no_warning():
    found = bootstrap(partial(measures.uncertainty_gap, np.ones(9, dtype=bool), np.linspace(0, 1, 9)), 9)
    assert all(np.isnan(value) for value in (found.value, found.low, found.high))


def test_the_same_seed_gives_the_same_interval():
    measure = partial(measures.deferral_auc, np.arange(200) < 70, np.random.default_rng(0).random(200))
    first, again, other = (bootstrap(measure, 200, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_ten_thousand_recordings_and_a_thousand_draws_take_seconds():
    rng = np.random.default_rng(0)
    right, uncertainty = rng.random(10_000) < 0.8, rng.random(10_000)
    started = time.process_time()
    bootstrap(lambda w: measures.threshold_auc(measures.correct_certain_ratio(right, uncertainty, w)), 10_000)
    bootstrap(partial(measures.deferral_auc, ~right, uncertainty), 10_000)
    assert time.process_time() - started < 20  # about 2 s on a free machine
