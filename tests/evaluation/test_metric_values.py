"""Metric values against a recomputation by other means."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from ecgquorum.ensemble import SCORES
from ecgquorum.evaluation.metric_values import ONE_MEMBER, metric_values
from ecgquorum.evaluation.predictions import LabelledPredictions


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_calibration_metrics_are_those_of_calibrated_probabilities(temperature):
    rng = np.random.default_rng(3)
    member_probs = rng.dirichlet(np.ones(3), size=(200, 2))
    labels = rng.integers(3, size=200)
    predictions = LabelledPredictions(labels, member_probs, rng.random(200), temperature)
    found = {one.metric: one.estimate.value for one in metric_values(predictions, ("a", "b", "c")) if not one.detail}
    raised = member_probs.mean(axis=1) ** (1 / temperature)
    sharpened = raised / raised.sum(axis=1, keepdims=True)
    assert found["brier"] == pytest.approx(brier_score_loss(np.eye(3)[labels], sharpened, scale_by_half=False))
    assert found["ece"] == pytest.approx(_calibration_error(sharpened, labels))
    assert found["nll"] == pytest.approx(log_loss(labels, sharpened))
    if temperature == 1.0:
        assert found["brier_raw"] == pytest.approx(found["brier"])
        assert found["ece_raw"] == pytest.approx(found["ece"])
    else:
        assert found["brier_raw"] != pytest.approx(found["brier"])


def _calibration_error(probs, labels, n_bins=15):
    """|confidence - accuracy| of each of 15 bins of equal width, weighted by how many are in it."""
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    total = 0.0
    for low in np.arange(n_bins) / n_bins:
        inside = (confidence > low) & (confidence <= low + 1 / n_bins)
        if inside.any():
            total += inside.sum() * abs(confidence[inside].mean() - correct[inside].mean())
    return total / len(labels)


def test_one_metric_alone_is_the_same_as_among_all():
    rng = np.random.default_rng(0)
    predictions = LabelledPredictions(rng.integers(2, size=30), rng.dirichlet(np.ones(2), size=(30, 3)), rng.random(30))
    everything = {(one.metric, one.detail): one for one in metric_values(predictions, ("a", "b"))}
    for metric in ("accuracy", "f1", "augrc", "uncertainty_gap"):
        alone = list(metric_values(predictions, ("a", "b"), only=metric))
        assert alone and all(one == everything[one.metric, one.detail] for one in alone)


def test_an_undefined_value_gives_a_reason():
    probs = np.array([[[0.9, 0.1]], [[0.8, 0.2]]])
    alone = list(metric_values(LabelledPredictions(np.zeros(2, int), probs, np.zeros(2)), ("a", "b")))
    found = {one.metric: one for one in alone if one.detail not in SCORES}
    assert found["augrc"].reason == ONE_MEMBER and not found["augrc"].estimate.is_defined
    assert found["f1"].detail == "b" and found["f1"].reason == "no recordings of this class"
    several = LabelledPredictions(np.zeros(2, int), probs.repeat(2, axis=1), np.zeros(2))
    reasons = {one.metric: one.reason for one in metric_values(several, ("a", "b")) if not one.detail}
    assert reasons["r_iu_auc"] == reasons["uncertainty_gap"] == "no incorrect predictions" and not reasons["augrc"]


@pytest.mark.parametrize("n_members", [1, 3])
def test_every_score_says_how_well_it_ranks_errors(n_members):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), size=(80, n_members))
    predictions = LabelledPredictions(rng.integers(3, size=80), probs, rng.random(80))
    values = [one for one in metric_values(predictions, ("a", "b", "c")) if one.detail in SCORES]
    found = {(one.metric, one.detail): one for one in values}
    names = ("error_auroc", "error_aupr", "aurc", "augrc", "errors_caught_at_10", "coverage_at_risk_5")
    assert found.keys() == {(name, score) for name in names for score in SCORES} and len(values) == len(found)
    auroc = roc_auc_score(~predictions.correct, 1 - probs.mean(axis=1).max(axis=1))
    assert found["error_auroc", "confidence"].estimate.value == pytest.approx(auroc)
    for (_, score), one in found.items():
        if n_members == 1 and score not in ("confidence", "entropy"):
            assert one.reason == ONE_MEMBER and not one.estimate.is_defined
        else:
            assert one.estimate.low <= one.estimate.high and not one.reason
    if n_members == 1:
        return
    worst = probs.mean(axis=1).max(axis=1).argsort()[:8]
    caught = (~predictions.correct)[worst].sum() / (~predictions.correct).sum()
    assert found["errors_caught_at_10", "confidence"].estimate.value == pytest.approx(caught)


def test_scores_without_errors_say_why_they_have_no_value():
    right = LabelledPredictions(np.zeros(5, int), np.tile([0.9, 0.1], (5, 2, 1)), np.zeros(5))
    reasons = {one.metric: one.reason for one in metric_values(right, ("a", "b")) if one.detail == "entropy"}
    missing = "no incorrect predictions"
    ranked = dict.fromkeys(("error_auroc", "error_aupr", "errors_caught_at_10"), missing)
    assert reasons == ranked | dict.fromkeys(("aurc", "augrc", "coverage_at_risk_5"), "")
