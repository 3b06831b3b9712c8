"""Scorecards of the same recordings are merged; those of different settings are not."""

import pytest

from ecgquorum import Scorecard, evaluate, load_ensemble
from ecgquorum.attacks import APGD, PGD
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation import AttackCondition, EvaluationOptions, merge_scorecards
from ecgquorum.evaluation.conditions import Condition
from tests.evaluation.conftest import QUICK

NO_CHECKS = EvaluationOptions(masking_records=0)


@pytest.fixture
def other(tiny_study):
    return load_ensemble(tiny_study / "runs" / "dec+part")


def test_ensembles_of_the_same_recordings_share_a_scorecard(other, baseline, cohort, quick_card):
    two = evaluate({"baseline": other}, cohort)
    (both,) = merge_scorecards([quick_card, two])
    assert [facts.name for facts in both.ensembles] == ["baseline", "baseline seed 0"]
    assert both.conditions == quick_card.conditions and both.conditions[0] == Condition()
    assert (1, 0) in both.predictions and (1, 1) not in both.predictions
    assert len(both.rows) == len(quick_card.rows) + len(two.rows), "no attack is shared, so none is the worst of these"
    compared = {(one.first, one.second, one.attack) for one in both.comparisons}
    assert compared == {(("baseline",), ("baseline seed 0",), "natural")}
    (same,) = merge_scorecards([quick_card, quick_card])
    assert len(same.ensembles) == 1
    tune = evaluate(baseline, cohort, options=EvaluationOptions(part="tune"))
    assert len(merge_scorecards([quick_card, tune])) == 2


def test_a_second_scorecard_of_a_run_adds_its_attacks(baseline, cohort, quick_card, value):
    strong = [AttackCondition(APGD(epsilon, n_steps=5), "ensemble") for epsilon in (20.0, 200.0)]
    two = evaluate(baseline, cohort, strong, options=NO_CHECKS)
    (both,) = merge_scorecards([quick_card, two])
    assert len(both.ensembles) == 1 and len(both.conditions) == 1 + 2 + 2
    found = {(row.attack, row.epsilon): row.value for row in both.find(metric="accuracy", target="ensemble")}
    for epsilon in (20.0, 200.0):
        alone = [value(card, attack="worst of all", epsilon=epsilon, metric="accuracy") for card in (quick_card, two)]
        assert found["worst of all", epsilon] <= min(alone)
        assert found["apgd", epsilon] == value(two, attack="apgd", epsilon=epsilon, metric="accuracy")
    keys = [(row.attack, row.target, row.epsilon, row.metric, row.detail) for row in both.rows]
    assert len(set(keys)) == len(keys)


def test_each_ensemble_has_its_own_worst_case_beside_that_of_the_shared_attacks(other, cohort, quick_card, tmp_path):
    weak = evaluate(other, cohort, QUICK[:1], options=NO_CHECKS)
    (both,) = merge_scorecards([quick_card, weak])

    def worst(card, name, attack="worst of all"):
        return {row.epsilon: row.value for row in card.find(ensemble=name, attack=attack, metric="accuracy")}

    assert worst(both, "baseline") == worst(quick_card, "baseline") and worst(both, "baseline").keys() == {20.0, 200.0}
    assert worst(both, "dec+part") == worst(weak, "dec+part")
    for one in both.ensembles:
        shared = worst(both, one.name, "worst of the shared attacks")
        assert shared == {20.0: worst(both, one.name)[20.0]}
    assert "worst of the shared attacks" in [ax.get_title().partition("  ")[0] for ax in both.plot().axes]
    again = Scorecard.load(both.save(tmp_path / "both.json"))
    assert again.rows == both.rows and again.comparisons == both.comparisons
    assert again.predictions.keys() == both.predictions.keys()
    (twice,) = merge_scorecards([again, weak])
    assert twice.rows == both.rows


@pytest.mark.parametrize(
    ("attacks", "options", "reason"),
    [
        (QUICK, {"seed": 1}, "different evaluation.seed"),
        (QUICK, {"normalise": "authors"}, "different evaluation.normalise"),
        ([PGD(20.0, n_steps=4)], {}, "two different attacks are called pgd on member 0"),
        ([AttackCondition(PGD(20.0, n_steps=3), records=5)], {}, "two different attacks are called pgd on member 0"),
    ],
)
def test_scorecards_of_other_settings_are_not_merged(other, cohort, quick_card, attacks, options, reason):
    card = evaluate(other, cohort, attacks, options=EvaluationOptions(masking_records=0, **options))
    with pytest.raises(ScorecardError, match=reason):
        merge_scorecards([quick_card, card])
