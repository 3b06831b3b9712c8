"""`risk` and `distance` in scorecards: under every condition, and recomputed from what is saved."""

import numpy as np
import pytest

from ecgquorum import EvaluationOptions, RiskOptions, Scorecard, evaluate, fit_risk
from ecgquorum.attacks import PGD
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation import merge_scorecards
from ecgquorum.metrics import error_auroc

from ..training.test_risk_fit import make_cohort, make_ensemble


def evaluate_toy(ensemble):
    cohort = make_cohort(200, seed=1, parts=["test"])
    attacks = [PGD(0.1, n_steps=2), PGD(0.3, n_steps=2)]
    return evaluate(ensemble, cohort, attacks, options=EvaluationOptions(masking_records=0))


@pytest.fixture(scope="module")
def card():
    ensemble = make_ensemble()
    fit_risk(ensemble, make_cohort(), RiskOptions([]))
    return evaluate_toy(ensemble)


def test_every_condition_has_both_scores(card):
    for score in ("risk", "distance"):
        rows = list(card.find(metric="error_auroc", detail=score))
        conditions = {(row.attack, row.epsilon) for row in rows}
        assert conditions == {
            ("natural", 0.0),
            ("pgd", 0.1),
            ("pgd", 0.3),
            ("worst of all", 0.1),
            ("worst of all", 0.3),
        }
        assert all(row.value is not None for row in rows)


def test_rows_follow_from_what_is_saved(card, tmp_path):
    again = Scorecard.load(card.save(tmp_path / "card.json"))
    for number, condition in enumerate(card.conditions):
        found = again.predictions[0, number]
        for score in ("risk", "distance"):
            np.testing.assert_array_equal(found.fitted_scores[score], card.predictions[0, number].fitted_scores[score])
            (row,) = card.find(metric="error_auroc", detail=score, attack=condition.attack, epsilon=condition.epsilon)
            assert row.value == pytest.approx(error_auroc(~found.correct, found.fitted_scores[score])[0])


@pytest.mark.long
def test_evaluations_with_two_risks_are_not_merged(card):
    ensemble = make_ensemble()
    fit_risk(ensemble, make_cohort(), RiskOptions([]))
    same, bare = evaluate_toy(ensemble), evaluate_toy(make_ensemble())
    assert same.ensembles[0].fitted == card.ensembles[0].fitted != bare.ensembles[0].fitted == ""
    (merged,) = merge_scorecards([card, same])
    assert len(merged.ensembles) == 1 and merged.predictions[0, 0] is card.predictions[0, 0], "as its rows"
    with pytest.raises(ScorecardError, match="two different fits of its risk"):
        merge_scorecards([card, bare])


def test_an_ensemble_without_a_fit_has_its_calibrated_doubt_as_risk_and_no_distance():
    natural = evaluate_toy(make_ensemble()).predictions[0, 0]
    np.testing.assert_allclose(natural.fitted_scores["risk"], 1 - natural.probs.max(axis=1))
    assert "distance" not in natural.fitted_scores
