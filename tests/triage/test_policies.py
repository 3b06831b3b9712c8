"""Policies: what each defers, by closed form; that budgets are kept and conformal sets cover."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.ensemble.prediction import DECIMALS, TOLERANCE
from ecgquorum.ensemble.risk import RiskModel
from ecgquorum.ensemble.scores import SCORE_NAMES
from ecgquorum.errors import EcgQuorumError, PolicyError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.triage import Budget, Conformal, ExpectedCost, Threshold, policy_from, policy_of
from ecgquorum.triage.policies import TuneFigures, class_probabilities

CLASSES = ("N", "A", "O", "~")


def predicted(rng, n, sharpness=1.0, classes=CLASSES):
    """Three members that disagree more or less."""
    logits = rng.normal(size=(n, 1, len(classes))) * 2 * sharpness + rng.normal(size=(n, 3, len(classes)))
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return Prediction(tuple(map(str, range(n))), classes, probs, (0.0, 1.0))


def drawn(rng, prediction):
    """Truth as likely as the ensemble says."""
    cumulative = prediction.probs.cumsum(axis=1)
    return (rng.random((len(prediction), 1)) > cumulative).sum(axis=1).clip(0, 3)


@given(share=st.floats(0, 1), seed=st.integers(0, 100), n=st.integers(1, 60))
def test_a_budget_is_never_exceeded(share, seed, n):
    prediction = predicted(np.random.default_rng(seed), n)
    policy = Budget.fit(prediction, share)
    assert policy.defer(prediction).sum() <= share * n + 1e-6


def test_thresholds():
    prediction = predicted(np.random.default_rng(0), 50)
    assert (Threshold(0.1).defer(prediction) == (prediction.risk > 0.1)).all()
    assert (Threshold(0.1, score="uncertainty").defer(prediction) == (prediction.uncertainty > 0.1)).all()
    assert Budget.fit(prediction, 1.0).defer(prediction).all()
    assert not Budget.fit(prediction, 0.0).defer(prediction).any()


def test_expected_cost_by_hand():
    probs = np.array([[[0.6, 0.3, 0.1, 0.0]], [[0.9, 0.05, 0.05, 0.0]]])
    prediction = Prediction(("a", "b"), CLASSES, probs, (0.0, 1.0))
    policy = ExpectedCost(0.5, {"A": {"N": 10.0}})
    np.testing.assert_allclose(policy.expected_cost(prediction), [0.3 * 10 + 0.1, 0.05 * 10 + 0.05])
    assert policy.defer(prediction).tolist() == [True, True]
    assert ExpectedCost(0.6, {"A": {"N": 10.0}}).defer(prediction).tolist() == [True, False]
    assert "10 for A predicted as N" in policy.sentence()
    with pytest.raises(PolicyError, match="found X"):
        ExpectedCost(0.5, {"X": {"N": 1.0}}).defer(prediction)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("sharpness", [0.5, 2.0])
def test_conformal_sets_cover(alpha, sharpness):
    """Over many splits the truth is in the set as often as promised, and below the quantile no more often than that.

    The likeliest class is in a set even where it alone goes beyond, and all least likely ones are level, at 1.
    """
    rng = np.random.default_rng(1)
    covered, earned = [], []
    for _ in range(60):
        tune, test = predicted(rng, 300, sharpness), predicted(rng, 300, sharpness)
        policy = Conformal.fit(tune, drawn(rng, tune), alpha)
        sets = policy.sets(test)
        truth, below = drawn(rng, test), Conformal(alpha, policy.quantile - 2 * TOLERANCE)
        covered.append(sets[np.arange(300), truth].mean())
        within = test.probs.max(axis=1) <= below.quantile
        earned.append((within & below.sets(test)[np.arange(300), truth]).mean())
        assert sets[np.arange(300), test.label_index].all()
        assert (policy.defer(test) == (sets.sum(axis=1) > 1)).all()
    error = np.std(covered) / np.sqrt(len(covered))
    assert np.mean(covered) >= 1 - alpha - 3 * error
    assert np.mean(earned) <= 1 - alpha + 1 / 301 + 3 * np.std(earned) / np.sqrt(len(earned))


def test_too_few_recordings_for_a_level_defer_everything_uncertain():
    prediction = predicted(np.random.default_rng(2), 5)
    policy = Conformal.fit(prediction, prediction.label_index, 0.01)
    assert policy.quantile == 1.0 and policy.defer(prediction).all()


@pytest.mark.parametrize(
    "policy",
    [
        Threshold(0.3),
        Budget(0.1, 0.4, score="mutual_information", tune=TuneFigures(10, 2, 3, 1, "a")),
        ExpectedCost(0.2, {"A": {"N": 5.0}}, score="confidence"),
        Conformal(0.1, 0.9),
    ],
)
def test_policies_are_saved_and_loaded_with_a_description(policy):
    assert policy_from(json.loads(json.dumps(policy.card()))) == policy
    prediction = predicted(np.random.default_rng(0), 3)
    assert policy.sentence().endswith(".") and policy.reason(prediction, 1)


@pytest.mark.parametrize(
    "card", [{}, {"kind": "x"}, {"kind": "threshold"}, {"kind": "threshold", "threshold": 1, "y": 2}]
)
def test_invalid_policy_cards_are_refused(card):
    with pytest.raises(PolicyError, match="policy that this version knows"):
        policy_from(card)


@pytest.mark.parametrize(("make", "value"), [(Budget.fit, -0.1), (Budget.fit, 1.5)])
def test_invalid_budgets_are_refused(make, value):
    with pytest.raises(PolicyError, match="from 0 to 1"):
        make(predicted(np.random.default_rng(0), 4), value)


@pytest.mark.parametrize(
    "card",
    [
        {"kind": "threshold", "threshold": float("nan")},
        {"kind": "cost", "review": float("nan"), "costs": {}},
        {"kind": "cost", "review": -1.0, "costs": {}},
        {"kind": "cost", "review": 0.1, "costs": {"A": {"N": -2.0}}},
        {"kind": "cost", "review": 0.1, "costs": {"A": {"A": 2.0}}},
    ],
)
def test_invalid_parameters_are_refused(card):
    with pytest.raises(PolicyError, match="expected"):
        policy_from(card)


def test_decisions_are_those_of_the_printed_numbers():
    """Uncertainties around a threshold, closer to it than the printed decimals."""
    probs = np.array([[[0.5 + d, 0.5 - d], [0.5 - d, 0.5 + d]] for d in np.linspace(0.3, 0.3 + 1e-4, 200)])
    prediction = Prediction(tuple(map(str, range(200))), ("a", "b"), probs, (0.0, 1.0))
    policy = Threshold(float(prediction.uncertainty[100]), score="uncertainty")
    printed = np.array([result.uncertainty for result in prediction.results()])
    assert (policy.defer(prediction) == (printed > round(policy.threshold, DECIMALS))).all()
    assert set(prediction.labels) == {"a"}, "equal printed probabilities give the first class"


@given(share=st.floats(0.01, 0.99), seed=st.integers(0, 100))
def test_a_fitted_threshold_differs_from_every_risk(share, seed):
    """Or rounding on another processor would decide about it."""
    prediction = predicted(np.random.default_rng(seed), 40)
    threshold = Budget.fit(prediction, share).threshold
    closest, gaps = np.abs(prediction.risk - threshold).min(), np.diff(np.sort(prediction.risk))
    assert closest >= min(TOLERANCE, gaps.min() / 2) * (1 - 1e-9)


def with_risk(prediction, intercept=-1.0):
    return replace(prediction, risk_model=RiskModel(("confidence",), (0.8,), intercept, {}))


@pytest.mark.parametrize("score", [name for name in SCORE_NAMES if name != "distance"])
def test_budgets_and_thresholds_take_any_score(score):
    prediction = with_risk(predicted(np.random.default_rng(3), 50))
    values = prediction.score(score)
    policy = Budget.fit(prediction, 0.2, score)
    deferred = policy.defer(prediction)
    assert deferred.sum() <= 10
    assert not deferred.any() or values[deferred].min() > values[~deferred].max()
    assert (Threshold(policy.threshold, score=score).defer(prediction) == deferred).all()


@pytest.mark.filterwarnings("ignore:invalid value encountered in logaddexp")
@pytest.mark.parametrize(
    "policy",
    [Threshold(0.5), Budget(0.1, 0.5), ExpectedCost(0.5, {}), Conformal(0.1, 0.9), Threshold(0.5, score="distance")],
)
def test_a_recording_whose_score_is_not_a_number_goes_to_people(policy):
    prediction = predicted(np.random.default_rng(0), 2)
    model = RiskModel(("confidence", "distance"), (0.0, 1.0), -10.0, {})
    broken = replace(prediction, risk_model=model, distance=np.array([0.1, np.nan]))
    assert policy.defer(broken).tolist() == [False, True]


@pytest.mark.parametrize("score", ["risk", "confidence"])
def test_a_threshold_is_a_cost_of_reviews_where_every_error_costs_1(score):
    """All policies mean the same number by "confidence": 1 - the largest calibrated probability."""
    prediction = replace(predicted(np.random.default_rng(6), 50), temperature=0.5)
    by_cost = ExpectedCost(0.2, {}, score=score)
    np.testing.assert_allclose(prediction.score(score), by_cost.expected_cost(prediction))
    assert (Threshold(0.2, score=score).defer(prediction) == by_cost.defer(prediction)).all()


def test_a_score_that_is_unknown_or_no_probability_is_refused():
    with pytest.raises(PolicyError, match="'doubt'"):
        Threshold(0.1, score="doubt")
    with pytest.raises(PolicyError, match="risk, confidence"):
        ExpectedCost(0.1, {}, score="entropy")
    with pytest.raises(EcgQuorumError, match="ecgquorum calibrate"):
        Threshold(0.1, score="distance").defer(predicted(np.random.default_rng(0), 3))


def test_class_probabilities_give_the_label_one_minus_the_risk():
    prediction = with_risk(predicted(np.random.default_rng(4), 30))
    found, rows = class_probabilities(prediction, "risk"), np.arange(30)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[rows, prediction.label_index], 1 - prediction.risk)
    others = np.delete(np.arange(4), prediction.label_index[0])
    np.testing.assert_allclose(
        found[0, others] / found[0, others].sum(), prediction.probs[0, others] / prediction.probs[0, others].sum()
    )
    np.testing.assert_array_equal(class_probabilities(prediction, "confidence"), prediction.probs)
    certain = replace(prediction, member_probs=np.eye(4)[np.zeros((30, 3), int)])
    np.testing.assert_allclose(class_probabilities(certain, "risk")[:, 1], certain.risk / 3)


def test_costs_by_risk_are_the_calibrated_ones_where_no_risk_is_fitted():
    prediction = predicted(np.random.default_rng(5), 20)
    by_risk, plain = (ExpectedCost(0.1, {"A": {"N": 4.0}}, score=score) for score in ("risk", "confidence"))
    np.testing.assert_allclose(by_risk.expected_cost(prediction), plain.expected_cost(prediction))
    sure = with_risk(prediction, intercept=-30.0)
    np.testing.assert_allclose(by_risk.expected_cost(sure), 0, atol=1e-9)


def test_figures_say_what_a_policy_would_have_done():
    probs = np.array([[[0.9, 0.1]], [[0.6, 0.4]], [[0.55, 0.45]], [[0.8, 0.2]]])
    prediction = Prediction(tuple("abcd"), ("N", "A"), probs, (0.0, 1.0))
    policy = Threshold(0.3).with_figures(prediction, np.array([0, 1, 0, 1]))
    assert policy.tune == TuneFigures(4, 2, 2, 1)
    assert policy.tune.sentence() == (
        "On the 4 tune recordings it would have deferred 2 (50.0 %) and caught 1 of 2 errors; "
        "50.0 % of the rest are errors."
    )
    assert Threshold(-1.0).with_figures(prediction, np.zeros(4, int)).tune.sentence().endswith("0 of 0 errors.")


def test_policies_of_old_cards_keep_their_score():
    assert policy_from({"kind": "budget", "share": 0.1, "threshold": 0.07}).score == "uncertainty"
    assert policy_from({"kind": "conformal", "alpha": 0.1, "quantile": 0.9}).score == "confidence"


@pytest.mark.parametrize("n", [4, 9, 19])
def test_the_conformal_quantile_of_few_recordings_is_that_of_the_correction(n):
    """At an error rate of 1/(n+1) the rank is n: the sets of the tune recordings hold all of their classes."""
    prediction = predicted(np.random.default_rng(n), n, 0.3)
    truth = prediction.probs.argmin(axis=1)  # the least likely ones, which are in a set only by the quantile
    truth[0] = prediction.label_index[0]
    policy = Conformal.fit(prediction, truth, 1 / (n + 1) + 1e-9)
    assert policy.sets(prediction)[np.arange(n), truth].all()
    looser = Conformal.fit(prediction, truth, (n - 0.5) / (n + 1))  # rank 2
    assert looser.quantile < policy.quantile


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5])
def test_error_rates_that_cannot_be_are_refused(alpha):
    prediction = predicted(np.random.default_rng(0), 4)
    with pytest.raises(PolicyError, match="between 0 and 1"):
        Conformal.fit(prediction, prediction.label_index, alpha)


def test_a_policy_of_another_risk_is_refused():
    risk = RiskModel(("confidence",), (0.8,), 0.1, {})
    figures = TuneFigures(10, 2, 3, 1, risk.sha256)
    by_risk, by_entropy = (Threshold(0.3, score=score, tune=figures) for score in ("risk", "entropy"))
    spec = InputSpec(("ECG",), 300.0)

    def ensemble(policy, model):
        made = Ensemble([nn.Identity()], CLASSES, spec, card={"policy": policy.card()})
        made.risk_model = model
        return made

    assert policy_of(ensemble(by_risk, risk)) == by_risk
    assert policy_of(Ensemble([nn.Identity()], CLASSES, spec)) is None
    with pytest.raises(PolicyError, match="fitted with another risk; fit it again"):
        policy_of(ensemble(by_risk, None))
    assert policy_of(ensemble(by_entropy, None)) == by_entropy, "which no fitted model changes"
