"""The scorecard: what the ensembles said, measured; and the answers to strange questions."""

import json

import numpy as np
import pytest
import torch

from ecgquorum import Cohort, Scorecard, build_cohort, evaluate, load_ensemble, name_ensembles, open_source
from ecgquorum.attacks import PGD
from ecgquorum.cohorts import SplitOptions
from ecgquorum.cohorts.sources.source import Source, SourceRecord
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import AttackError, CohortError, ScorecardError
from ecgquorum.evaluation.conditions import Condition, choose_records
from ecgquorum.evaluation.merge import merged
from ecgquorum.recipes import AttackRecipe, EvaluationRecipe
from ecgquorum.recordings import Recording
from ecgquorum.report.signs import masking_findings

QUICK = EvaluationRecipe(
    epsilons=(20.0, 200.0), attacks=(AttackRecipe(kind="pgd", options={"n_steps": 3}),), masking_records=4
)
NATURAL_ONLY = EvaluationRecipe(attacks=(), masking_records=0)


@pytest.fixture(scope="module")
def card(tiny_study):
    return Scorecard.load(tiny_study / "scorecard.json")


@pytest.fixture
def cohort(tiny_study):
    return Cohort(tiny_study / "cohort")


@pytest.fixture
def baseline(tiny_study):
    return load_ensemble(tiny_study / "runs" / "baseline")


@pytest.fixture(scope="module")
def quick_card(tiny_study):
    """The baseline under QUICK."""
    return evaluate(load_ensemble(tiny_study / "runs" / "baseline"), Cohort(tiny_study / "cohort"), QUICK)


def value(card, **wanted):
    (row,) = card.find(**wanted)
    return row.value


def test_rows_are_what_the_ensemble_says(card, cohort, baseline):
    prediction = baseline.predict_part(cohort, "test")
    indices = cohort.part("test")
    truth = cohort.labels[indices]
    right = prediction.label_index == truth
    natural = {"ensemble": "baseline", "attack": "natural", "target": ""}
    assert value(card, measure="accuracy", **natural) == pytest.approx(right.mean())
    assert value(card, measure="mean_i_norm", **natural) == pytest.approx(prediction.uncertainty.mean(), abs=1e-4)
    attacked = PGD(50.0)(baseline.members[0], cohort.batch(indices, baseline.spec))
    with torch.no_grad():
        expected = (baseline(attacked.signal).argmax(dim=1).numpy() == truth).mean()
    found = value(card, ensemble="baseline", attack="pgd", target="member 0", epsilon=50.0, measure="accuracy")
    assert found == pytest.approx(expected)
    for e, one in enumerate(card.ensembles):
        for c, condition in enumerate(card.conditions):
            under = {"attack": condition.attack, "target": condition.target, "epsilon": condition.epsilon}
            found = value(card, ensemble=one.name, measure="accuracy", **under)
            assert found == pytest.approx(card.answers[e, c].right.mean())


def test_every_row_has_its_interval_or_its_reason(card):
    for row in card.rows:
        if row.value is None:
            assert row.reason and row.low is None and row.high is None
        else:
            assert row.low - 1e-9 <= row.value <= row.high + 1e-9 or row.measure in ("ece", "macro_f1", "f1", "aurc")
            assert row.reason == ""
        assert row.model and row.data == card.data.data and row.n_records > 0
    assert {row.measure for row in card.rows} >= {
        "accuracy", "macro_f1", "f1", "ece", "brier", "r_cc_auc", "r_iu_auc", "ua_auc", "delta_i_norm", "deferral_auc",
        "aurc", "risk_at_80", "risk_at_90", "adjusted_r2", "linear_cka", "disagreement", "loss", "zero_gradients",
    }  # fmt: skip


def test_the_worst_of_all_is_never_better_than_any(card):
    for row in card.find(attack="worst of all", measure="accuracy"):
        e = [one.name for one in card.ensembles].index(row.ensemble)
        common = set.intersection(*(set(places.tolist()) for places in card.records))
        assert row.n_records == len(common) == 12
        for c, condition in enumerate(card.conditions):
            if condition.epsilon <= row.epsilon:
                places = np.searchsorted(card.records[c], sorted(common))
                assert row.value <= card.answers[e, c].right[places].mean() + 1e-12


def test_a_scorecard_survives_the_disk_and_notices_damage(card, tmp_path):
    path = card.save(tmp_path / "card.json")
    again = Scorecard.load(path)
    assert again.rows == card.rows and again.conditions == card.conditions and again.ensembles == card.ensembles
    for key, said in card.answers.items():
        np.testing.assert_array_equal(again.answers[key].member_probs, said.member_probs)
        np.testing.assert_array_equal(again.answers[key].uncertainty, said.uncertainty)
    assert "NaN" not in path.read_text()
    edited = path.read_text().replace('"accuracy"', '"accuracv"', 1)
    path.write_text(edited)
    with pytest.raises(ScorecardError, match="changed or damaged"):
        Scorecard.load(path)
    card.save(path)
    content = bytearray((tmp_path / "card.npz").read_bytes())
    content[100] ^= 1
    (tmp_path / "card.npz").write_bytes(content)
    with pytest.raises(ScorecardError, match="card.npz: expected the answers of card.json"):
        Scorecard.load(path)
    (tmp_path / "card.npz").unlink()
    with pytest.raises(ScorecardError, match="card.npz"):
        Scorecard.load(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', '{"format": 3, "rows": []}', "\x00"])
def test_what_is_no_scorecard_is_refused(tmp_path, content):
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(ScorecardError, match="s.json: expected a scorecard"):
        Scorecard.load(tmp_path / "s.json")
    with pytest.raises(ScorecardError, match="nowhere"):
        Scorecard.load(tmp_path / "nowhere.json")


def test_a_row_is_a_line_of_the_file(card, tmp_path):
    path = card.save(tmp_path / "card.json")
    document = json.loads(path.read_text())
    lines = [line for line in path.read_text().splitlines() if line.startswith('  {"ensemble"')]
    assert len(lines) == len(document["rows"]) == len(card.rows)


def test_what_is_measured_twice_is_the_same(cohort, baseline, quick_card):
    cards = [quick_card, evaluate(baseline, cohort, QUICK)]
    assert cards[0].rows == cards[1].rows


def test_uncertainty_can_be_normalised_by_the_evaluated_part(cohort, baseline):
    card = evaluate(baseline, cohort, NATURAL_ONLY.model_copy(update={"normalise": "evaluated"}))
    said = card.answers[0, 0]
    assert said.uncertainty.min() == pytest.approx(0, abs=1e-6)
    assert said.uncertainty.max() == pytest.approx(1, abs=1e-6)
    assert card.ensembles[0].information_range != baseline.information_range


def test_fewer_recordings_are_among_more():
    some, more = choose_records(100, 10, seed=3), choose_records(100, 40, seed=3)
    assert set(some) < set(more) and len(some) == 10
    assert (np.diff(some) > 0).all()
    np.testing.assert_array_equal(choose_records(5, 9, seed=0), np.arange(5))


# --- strange questions -----------------------------------------------------------------------------------------------


def test_one_member_has_no_uncertainty_to_measure(tiny_recipe, tiny_cohort, tmp_path):
    from ecgquorum import train_ensemble

    alone = train_ensemble(tiny_recipe.model_copy(update={"members": 1}), tiny_cohort, tmp_path / "run")
    card = evaluate(alone, tiny_cohort, QUICK)
    assert value(card, attack="natural", target="", measure="accuracy") is not None
    for measure in ("r_cc_auc", "r_iu_auc", "ua_auc", "delta_i_norm", "deferral_auc", "aurc"):
        for row in card.find(measure=measure):
            assert row.value is None and "one member" in row.reason


def test_a_class_that_is_missing_says_so(baseline, cohort, monkeypatch):
    part = cohort.part("test")
    without = part[cohort.labels[part] != 1]
    monkeypatch.setattr(cohort, "part", lambda name: without if name == "test" else Cohort.part(cohort, name))
    card = evaluate(baseline, cohort, NATURAL_ONLY)
    (row,) = card.find(measure="f1", detail="A")
    assert row.value is None and row.reason == "no recordings of this class"
    assert card.data.n_recordings["A"] == 0
    assert 0 <= value(card, attack="natural", target="", measure="macro_f1") <= 1


def test_flat_recordings_and_ones_with_gaps_get_answers(baseline, tmp_path):
    rng = np.random.default_rng(0)

    def load(index):
        signal = rng.normal(size=(1, 1500)).astype(np.float32) / 5
        if index % 4 == 0:
            signal[:] = 0.001 * index  # flat, but not a copy of another
        if index % 4 == 1:
            signal[0, 100:300] = np.nan
        return Recording(f"r{index}", signal, 300.0, ("ECG",), None, ("NAO~"[index % 4],), "")

    names = {name: name for name in "NAO~"}
    records = {f"r{i}": SourceRecord(simulate=lambda i=i: load(i)) for i in range(40)}
    source = Source("made", tuple("NAO~"), names, records, ("ECG",), 300.0)
    cohort, _ = build_cohort(source, tmp_path / "c", split=SplitOptions(test_share=0.5))
    card = evaluate(baseline, cohort, QUICK)
    assert all(np.isfinite(said.member_probs).all() for said in card.answers.values())
    assert all(row.value is not None or row.reason for row in card.rows)


def test_another_split_of_the_same_data_is_pointed_out(baseline, cohort, tmp_path):
    source = open_source("synthetic:physionet2017", records=80, seconds=5.0)
    other, _ = build_cohort(source, tmp_path / "c", split=SplitOptions(seed=7))
    assert not evaluate(baseline, other, NATURAL_ONLY).ensembles[0].same_cohort
    assert evaluate(baseline, cohort, NATURAL_ONLY).ensembles[0].same_cohort


def test_a_cohort_of_another_kind_is_refused(baseline, tmp_path):
    other, _ = build_cohort(open_source("synthetic:cpsc2018", records=20, seconds=2.0), tmp_path / "c")
    with pytest.raises(CohortError, match="classes, leads and rate of baseline"):
        evaluate(baseline, other)


def test_an_empty_part_is_refused(baseline, tmp_path):
    build_cohort(
        open_source("synthetic:physionet2017", records=20, seconds=2.0),
        tmp_path / "c",
        split=SplitOptions(test_share=0.0),
    )
    with pytest.raises(CohortError, match="test part, found none"):
        evaluate(baseline, Cohort(tmp_path / "c"))


def test_nothing_to_test_and_unlike_scales_are_refused(baseline, tiny_study, cohort):
    with pytest.raises(ScorecardError, match="found none"):
        evaluate({}, cohort)
    other = load_ensemble(tiny_study / "runs" / "dec+part")
    other.spec = type(other.spec)(other.spec.leads, other.spec.rate_hz, "unit", other.spec.window_s)
    with pytest.raises(ScorecardError, match="strength of an attack would mean something else"):
        evaluate({"a": baseline, "b": other}, cohort, NATURAL_ONLY)


# --- names and merging -----------------------------------------------------------------------------------------------


def test_ensembles_are_named_by_what_tells_them_apart(tiny_study):
    one, two = (load_ensemble(tiny_study / "runs" / name) for name in ("baseline", "dec+part"))
    again = load_ensemble(tiny_study / "runs" / "baseline")
    assert list(name_ensembles([one, two])) == ["baseline", "dec+part"]
    again.card["recipe"] = again.card["recipe"].replace("seed = 0", "seed = 4", 1)
    assert list(name_ensembles([one, again])) == ["baseline seed 0", "baseline seed 4"]
    assert len(name_ensembles([one, one])) == 2


def test_scorecards_of_the_same_recordings_are_put_together(tiny_study, cohort, card, quick_card):
    runs = {name: load_ensemble(tiny_study / "runs" / name) for name in ("baseline", "dec+part")}
    one = quick_card
    two = evaluate({"baseline": runs["dec+part"]}, cohort, NATURAL_ONLY)
    (both,) = merged([one, two])
    assert [facts.name for facts in both.ensembles] == ["baseline", "baseline seed 0"]
    assert both.conditions == one.conditions
    assert (1, 0) in both.answers and (1, 1) not in both.answers
    assert len(both.rows) == len(one.rows) + len(two.rows) - len(list(one.find(attack="worst of all")))
    (same,) = merged([one, one])
    assert len(same.ensembles) == 1
    other = evaluate({"baseline": runs["baseline"]}, cohort, QUICK.model_copy(update={"part": "tune"}))
    assert len(merged([one, other])) == 2
    assert Condition() == card.conditions[0]


def test_a_second_scorecard_of_a_run_adds_what_it_has(baseline, cohort, quick_card):
    one = quick_card
    strong = AttackRecipe(kind="apgd", target="ensemble", options={"n_steps": 5})
    two = evaluate(baseline, cohort, QUICK.model_copy(update={"attacks": (strong,), "masking_records": 0}))
    (both,) = merged([one, two])
    assert len(both.ensembles) == 1 and len(both.conditions) == 1 + 2 + 2
    found = {(row.attack, row.epsilon): row.value for row in both.find(measure="accuracy", target="ensemble")}
    for epsilon in (20.0, 200.0):
        alone = [value(card, attack="worst of all", epsilon=epsilon, measure="accuracy") for card in (one, two)]
        assert found["worst of all", epsilon] <= min(alone)
        assert found["apgd", epsilon] == value(two, attack="apgd", epsilon=epsilon, measure="accuracy")
    keys = [(row.attack, row.target, row.epsilon, row.measure, row.detail) for row in both.rows]
    assert len(set(keys)) == len(keys)


def test_the_worst_is_of_what_all_were_put_to(tiny_study, cohort, quick_card):
    other = load_ensemble(tiny_study / "runs" / "dec+part")
    weak = evaluate(other, cohort, QUICK.model_copy(update={"epsilons": (20.0,), "masking_records": 0}))
    (both,) = merged([quick_card, weak])
    assert {row.epsilon for row in both.find(attack="worst of all")} == {20.0}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seed": 1}, "same evaluation.seed"),
        ({"normalise": "evaluated"}, "same evaluation.normalise"),
        ({"attacks": (AttackRecipe(kind="pgd", options={"n_steps": 4}),)}, "called pgd on member 0, found two"),
        ({"attacks": (AttackRecipe(kind="pgd", options={"n_steps": 3}, records=5),)}, "called pgd on member 0"),
    ],
)
def test_scorecards_of_other_questions_are_not_put_together(tiny_study, cohort, quick_card, change, reason):
    other = load_ensemble(tiny_study / "runs" / "dec+part")
    asked = evaluate(other, cohort, QUICK.model_copy(update={"epsilons": (20.0,), "masking_records": 0} | change))
    with pytest.raises(ScorecardError, match=reason):
        merged([quick_card, asked])


# --- models that are not ours ----------------------------------------------------------------------------------------


class Stranger(torch.nn.Module):
    """Somebody's own network: no features, and with a gradient only if asked for."""

    def __init__(self, differentiable=True, broken=False):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)
        self.differentiable, self.broken = differentiable, broken

    def forward(self, x):
        if not self.differentiable:
            x = x.detach()
        h = torch.nn.functional.adaptive_avg_pool1d(x, 8)[:, 0] / 100
        return self.linear(h) + (torch.nan if self.broken else 0)


def strangers(baseline, **options):
    torch.manual_seed(0)
    members = [Stranger(**options) for _ in range(3)]
    for member in members:
        member.requires_grad_(False)
    return Ensemble(members, baseline.classes, baseline.spec)


def test_strangers_models_are_put_to_the_test(baseline, cohort):
    card = evaluate(strangers(baseline), cohort, QUICK)
    assert value(card, attack="natural", target="", measure="accuracy") is not None
    for row in card.find(measure="adjusted_r2"):
        assert row.value is None and "gives no features" in row.reason
    assert all(row.value is not None for row in card.find(measure="disagreement"))


def test_a_model_without_a_gradient_can_still_be_asked(baseline, cohort):
    model = strangers(baseline, differentiable=False)
    with pytest.raises(AttackError, match="attack it with Square"):
        evaluate(model, cohort, QUICK)
    asking = AttackRecipe(kind="square", target="ensemble", options={"n_queries": 5})
    card = evaluate(model, cohort, QUICK.model_copy(update={"attacks": (asking,)}))
    assert value(card, measure="zero_gradients") == 1.0
    assert masking_findings(card, "ensemble") == ["100 % of recordings have no gradient"]


def test_answers_that_are_not_numbers_are_refused(baseline, cohort):
    with pytest.raises(ScorecardError, match=r"expected finite probabilities, found none for S\d+ \(natural\)"):
        evaluate(strangers(baseline, broken=True), cohort, QUICK)


def test_diversity_says_how_many_recordings_it_is_of(card, cohort):
    n_unseen = len(cohort.part("tune")) + len(cohort.part("test"))
    assert {row.n_records for row in card.find(measure="linear_cka")} == {n_unseen}
    assert {row.n_records for row in card.find(measure="disagreement")} == {len(cohort.part("test"))}
