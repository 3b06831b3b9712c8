"""`evaluate` on cohorts and arrays, for built-in and custom networks."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import ecgquorum as eq
from ecgquorum import Cohort, build_cohort, evaluate, load_ensemble, metrics, name_ensembles, open_source
from ecgquorum.attacks import PGD, Attack, Square
from ecgquorum.cohorts import SplitOptions
from ecgquorum.cohorts.sources.source import Source, SourceRecord
from ecgquorum.ensemble import SCORES, Ensemble
from ecgquorum.errors import AttackError, CohortError, ScorecardError
from ecgquorum.evaluation import AttackCondition, EvaluationOptions
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recordings import Recording
from ecgquorum.report.findings import masking_findings
from tests.evaluation.conftest import FEW_CHECKS, QUICK

NO_CHECKS = EvaluationOptions(masking_records=0)


def test_rows_are_what_the_ensemble_predicts(card, cohort, baseline, value):
    prediction = baseline.predict_part(cohort, "test")
    indices = cohort.part("test")
    labels = cohort.labels[indices]
    natural = {"ensemble": "baseline", "attack": "natural", "target": ""}
    assert value(card, metric="accuracy", **natural) == pytest.approx((prediction.label_index == labels).mean())
    assert value(card, metric="mean_uncertainty", **natural) == pytest.approx(prediction.uncertainty.mean(), abs=1e-4)
    batch = cohort.batch(indices, baseline.input)
    attacked = PGD(50.0)(baseline.members[0], batch.signal, batch.label, batch.valid)
    with torch.no_grad():
        expected = (baseline(attacked).argmax(dim=1).numpy() == labels).mean()
    found = value(card, ensemble="baseline", attack="pgd", target="member 0", epsilon=50.0, metric="accuracy")
    assert found == pytest.approx(expected, abs=1.5 / len(labels))
    for e, one in enumerate(card.ensembles):
        for c, condition in enumerate(card.conditions):
            under = {"attack": condition.attack, "target": condition.target, "epsilon": condition.epsilon}
            found = value(card, ensemble=one.name, metric="accuracy", **under)
            assert found == pytest.approx(card.predictions[e, c].correct.mean())


def test_the_same_evaluation_twice_gives_the_same_rows(cohort, baseline, quick_card):
    assert evaluate(baseline, cohort, QUICK, options=FEW_CHECKS).rows == quick_card.rows


def test_without_attacks_only_natural_recordings_are_evaluated(cohort, baseline):
    card = evaluate(baseline, cohort)
    assert len(card.conditions) == 1 and not list(card.find(attack="masking"))
    assert list(card.find(attack="masking")) == []


def test_progress_reaches_its_total(cohort, baseline):
    reports, lines = [], []

    class Recorder:
        def update(self, text, done, total):
            reports.append((text, done, total))

        def log(self, line):
            lines.append(line)

    card = evaluate(baseline, cohort, QUICK[:1], options=NO_CHECKS, progress=Recorder())
    n_test = card.data.n_records
    assert reports[0][:2] == ("natural", 0) and reports[-1][1:] == (2 * n_test, 2 * n_test)
    assert "pgd on member 0, 20" in {text for text, _, _ in reports}
    assert lines == ["evaluated: natural", "evaluated: pgd on member 0, 20"]


def test_uncertainty_can_be_normalised_as_the_authors_do(cohort, baseline, value):
    card = evaluate(baseline, cohort, QUICK[1:], options=EvaluationOptions(normalise="authors", masking_records=0))
    natural = card.predictions[0, 0]
    assert natural.uncertainty.min() == pytest.approx(0, abs=1e-6)
    assert natural.uncertainty.max() == pytest.approx(1, abs=1e-6)
    low, high = card.ensembles[0].information_range
    assert (low, high) != baseline.information_range
    attacked = card.predictions[0, 1]
    expected = (SCORES["mutual_information"](attacked.raw_member_probs) - low) / (high - low)
    np.testing.assert_allclose(attacked.uncertainty, expected, err_msg="one range for all strengths")
    for attack, one in (("natural", natural), ("pgd", attacked)):
        for metric, curve in (("r_cc_auc", metrics.correct_certain_ratio), ("ua_auc", metrics.uncertainty_accuracy)):
            over_thresholds = np.nanmean(curve(one.correct, one.uncertainty))
            assert value(card, attack=attack, metric=metric) == pytest.approx(over_thresholds)


def test_uncertainty_can_be_normalised_by_a_quantile_of_training(cohort, baseline):
    card = evaluate(baseline, cohort, options=EvaluationOptions(normalise="robust", masking_records=0))
    trained = baseline.predict_part(cohort, "train").mutual_information
    expected = pytest.approx((0.0, np.quantile(trained, 0.999)), rel=1e-4)
    assert card.ensembles[0].information_range == baseline.robust_information_range == expected
    batch = cohort.batch(cohort.part("test"), baseline.input)
    elsewhere = evaluate(baseline, (batch.signal, batch.label), options=EvaluationOptions(normalise="robust"))
    assert elsewhere.ensembles[0].information_range == baseline.robust_information_range, "the card has it"
    baseline.information_range = baseline.robust_information_range
    information = baseline.predict_part(cohort, "test")
    np.testing.assert_allclose(
        information.uncertainty, information.mutual_information / baseline.robust_information_range[1]
    )


def test_a_robust_range_that_the_card_lacks_is_measured(cohort, baseline):
    stored, baseline.robust_information_range = baseline.robust_information_range, None
    card = evaluate(baseline, cohort, options=EvaluationOptions(normalise="robust", masking_records=0))
    assert card.ensembles[0].information_range == pytest.approx(stored, rel=1e-4)
    batch = cohort.batch(cohort.part("test"), baseline.input)
    with pytest.raises(ScorecardError, match='normalise = "robust" reads the recordings that it was trained on'):
        evaluate(baseline, (batch.signal, batch.label), options=EvaluationOptions(normalise="robust"))


def test_the_old_name_of_a_normalisation_is_refused():
    with pytest.raises(ScorecardError, match='"evaluated" is now "authors"'):
        EvaluationOptions(normalise="evaluated")


def test_diversity_holds_the_number_of_recordings(card, cohort):
    n_unseen = len(cohort.part("tune")) + len(cohort.part("test"))
    assert {row.n_records for row in card.find(metric="linear_cka")} == {n_unseen}
    assert {row.n_records for row in card.find(metric="disagreement")} == {len(cohort.part("test"))}


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_arrays_give_the_same_scorecard_as_a_cohort_of_the_same_recordings(cohort, baseline, quick_card, value):
    batch = cohort.batch(cohort.part("test"), baseline.input)
    card = evaluate(baseline, (batch.signal, batch.label), QUICK, options=FEW_CHECKS)
    for key, expected in quick_card.predictions.items():
        np.testing.assert_allclose(card.predictions[key].probs, expected.probs, atol=0.02)
        np.testing.assert_array_equal(card.predictions[key].labels, expected.labels)
    np.testing.assert_allclose(card.predictions[0, 0].probs, quick_card.predictions[0, 0].probs, atol=1e-4)
    for one, other in zip(card.examples, quick_card.examples, strict=True):
        assert one.position == other.position
        np.testing.assert_allclose(one.natural, other.natural, atol=1e-5)
    assert card.data.n_recordings == quick_card.data.n_recordings and card.data.source == "arrays"


def test_an_in_memory_cohort_is_evaluated(cohort, baseline):
    indices = cohort.part("test")
    signals = [np.array(cohort.signal(int(i))) for i in indices]
    length = max(signal.shape[1] for signal in signals)
    x = np.stack([np.pad(signal, ((0, 0), (0, length - signal.shape[1]))) for signal in signals])
    arrays = Cohort.from_arrays(
        x, cohort.labels[indices], classes=cohort.classes, rate_hz=cohort.rate_hz, leads=cohort.leads
    )
    part = "test" if len(arrays.part("test")) else "tune"
    card = evaluate(baseline, arrays, options=EvaluationOptions(part=part))
    assert card.data.n_records == len(arrays.part(part))


def test_arrays_may_be_lists_and_tensors(baseline):
    x = torch.randn(4, 1, 600) * 100
    one = evaluate(baseline, (x, torch.tensor([0, 1, 2, 3])))
    other = evaluate(baseline, (x.numpy().tolist(), [0, 1, 2, 3]))
    assert one.rows == other.rows


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.zeros((4, 600)), [0, 1, 2, 3], r"shape \(4, 600\).*\(record, 1, time\) at 300 Hz"),
        (np.zeros((4, 2, 600)), [0, 1, 2, 3], r"shape \(4, 2, 600\)"),
        (np.zeros((4, 1, 600)), [0, 1, 2], "one label for each of 4 records"),
        (np.zeros((0, 1, 600)), [], "one label for each of 0 records"),
        (np.zeros((4, 1, 600)), [0, 1, 2, 4], "class numbers from 0 to 3"),
        (np.full((4, 1, 600), np.nan), [0, 1, 2, 3], "must be finite"),
    ],
)
def test_arrays_that_do_not_fit_give_a_reason(baseline, x, y, reason):
    with pytest.raises(CohortError, match=reason):
        evaluate(baseline, (x, y))


def test_padding_of_arrays_is_not_attacked(baseline):
    x = np.zeros((4, 1, 900), dtype=np.float32)
    x[:, :, 200:700] = np.random.default_rng(0).normal(size=(4, 1, 500)) * 100
    seen = []

    @dataclass(frozen=True, kw_only=True)
    class Everywhere(Attack):
        def perturb(self, model, x, y, valid, generator):
            seen.append(valid)
            return x + self.epsilon

    evaluate(baseline, (x, [0, 1, 2, 3]), [Everywhere(5.0)], options=NO_CHECKS)
    np.testing.assert_array_equal(np.flatnonzero(seen[0][0, 0]), np.arange(200, 700))


# --- custom networks and attacks -------------------------------------------------------------------------------------


class PoolNet(torch.nn.Module):
    """A custom network without `embed` and batch norm."""

    def __init__(self, n_classes=4, *, linear=True, differentiable=True, broken=False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, n_classes))
        self.linear = torch.nn.Linear(8, n_classes) if linear else None
        self.differentiable, self.broken = differentiable, broken

    def forward(self, x):
        if not self.differentiable:
            x = x.detach()
        h = torch.nn.functional.adaptive_avg_pool1d(x.flatten(2), 8)[:, 0] / 100
        return (self.linear(h) if self.linear else h @ self.weight) + (torch.nan if self.broken else 0)


def pool_ensemble(baseline, **options):
    torch.manual_seed(0)
    members = [PoolNet(**options).requires_grad_(options.get("differentiable", True) is not False) for _ in range(3)]
    for member in members:
        member.requires_grad_(False)
    return Ensemble(members, baseline.classes, baseline.input)


def test_any_networks_are_evaluated_with_features_from_a_hook(baseline, cohort, value):
    card = evaluate(pool_ensemble(baseline), cohort, QUICK, options=FEW_CHECKS)
    assert card.ensembles[0].name == "ensemble" and card.ensembles[0].model
    assert value(card, attack="natural", target="", metric="accuracy") is not None
    for metric in ("adjusted_r2", "linear_cka", "disagreement"):
        assert all(row.value is not None for row in card.find(metric=metric))
    again = evaluate(pool_ensemble(baseline), cohort)
    assert again.ensembles[0].model == card.ensembles[0].model


def test_networks_without_features_are_evaluated(baseline, cohort):
    card = evaluate(pool_ensemble(baseline, linear=False), cohort)
    for row in card.find(metric="adjusted_r2"):
        assert row.value is None and row.reason == "a member without features"
    assert all(row.value is not None for row in card.find(metric="disagreement"))


@dataclass(frozen=True, kw_only=True)
class Flip(Attack):
    """A custom attack that is not registered: moves every sample towards zero."""

    share: float = 1.0

    def perturb(self, model, x, y, valid, generator):
        return x - self.share * x


def test_a_custom_attack_is_evaluated_and_cached(baseline, tmp_path):
    x = np.random.default_rng(0).normal(size=(8, 1, 900)).astype(np.float32) * 100
    data = (x, np.arange(8) % 4)
    attacks = [Flip(50.0), AttackCondition(Flip(50.0, share=0.5), "ensemble", name="half flip")]
    card = evaluate(baseline, data, attacks, options=NO_CHECKS, cache=tmp_path)
    assert [str(one) for one in card.conditions[1:]] == ["Flip on member 0, 50", "half flip on ensemble, 50"]
    assert card.evaluation["attacks"][1]["options"]["share"] == 0.5
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2
    for example in card.examples:
        assert 0 < np.abs(example.attacked[1] - example.natural).max() <= 0.05 + 1e-6
    assert evaluate(baseline, data, attacks, options=NO_CHECKS, cache=tmp_path).rows == card.rows


def test_images_are_evaluated_too():
    """Channels instead of leads, two dimensions instead of time."""
    members = [PoolNet(2), PoolNet(2)]
    ensemble = Ensemble(members, ("a", "b"), InputSpec(("grey",), 1.0))
    x = np.random.default_rng(0).normal(size=(40, 1, 8, 8)) * 100
    card = evaluate(ensemble, (x, np.arange(40) % 2), [PGD(50.0)], options=FEW_CHECKS)
    assert card.examples == () and card.table("accuracy").rows[0][1][0] is not None
    natural, attacked = (card.estimate(attack=a, metric="accuracy").value for a in ("natural", "pgd"))
    assert attacked <= natural


def test_the_lines_of_the_readme(tmp_path):
    """As users write it: own networks, arrays, attack objects, a table, a figure and a file."""
    net1, net2, net3 = PoolNet(), PoolNet(), PoolNet()
    x, y = np.random.default_rng(0).normal(size=(16, 1, 600)) * 100, np.arange(16) % 4
    ensemble = eq.Ensemble(
        [net1, net2, net3], classes=["N", "A", "O", "~"], input=eq.InputSpec(leads=("ECG",), rate_hz=300)
    )
    card = eq.evaluate(ensemble, (x, y), attacks=[eq.attacks.PGD(10.0), eq.attacks.SAP(50.0)])
    assert "pgd on member 0, 10 µV" in str(card.table("accuracy"))
    assert card.plot().axes
    assert eq.Scorecard.load(card.save(tmp_path / "scorecard.json")).rows == card.rows


def test_a_model_without_a_gradient_can_be_attacked_by_queries(baseline, cohort, value):
    model = pool_ensemble(baseline, differentiable=False)
    with pytest.raises(AttackError, match="attack it with Square"):
        evaluate(model, cohort, QUICK)
    queries = AttackCondition(Square(20.0, n_queries=5), "ensemble")
    card = evaluate(model, cohort, [queries], options=FEW_CHECKS)
    assert value(card, metric="zero_gradients") == 1.0
    assert masking_findings(card, "ensemble") == ["100 % of recordings have no gradient"]


def test_predictions_that_are_not_finite_are_an_error(baseline, cohort):
    with pytest.raises(ScorecardError, match=r"the probabilities of S\d+ are not finite \(natural\)"):
        evaluate(pool_ensemble(baseline, broken=True), cohort)


# --- unusual data ----------------------------------------------------------------------------------------------------


def test_one_member_has_no_uncertainty(baseline, cohort, value):
    alone = Ensemble([baseline.members[0]], baseline.classes, baseline.input)
    card = evaluate(alone, cohort, QUICK, options=NO_CHECKS)
    assert value(card, attack="natural", target="", metric="accuracy") is not None
    for metric in ("r_cc_auc", "r_iu_auc", "ua_auc", "uncertainty_gap", "augrc", "aurc"):
        for row in card.find(metric=metric, detail=""):
            assert row.value is None and "one member" in row.reason


def test_a_class_without_recordings_gives_a_reason(baseline, cohort, value):
    batch = cohort.batch(cohort.part("test"), baseline.input)
    kept = batch.label != 1
    card = evaluate(baseline, (batch.signal[kept], batch.label[kept]))
    (row,) = card.find(metric="f1", detail="A")
    assert row.value is None and row.reason == "no recordings of this class"
    assert card.data.n_recordings["A"] == 0
    assert 0 <= value(card, attack="natural", target="", metric="macro_f1") <= 1


def test_flat_recordings_and_ones_with_gaps_are_classified(baseline, tmp_path):
    rng = np.random.default_rng(0)

    def load(index):
        signal = rng.normal(size=(1, 1500)).astype(np.float32) / 5
        if index % 4 == 0:
            signal[:] = 0.001 * index  # flat, but not a copy of another
        if index % 4 == 1:
            signal[0, 100:300] = np.nan
        return Recording(f"r{index}", signal, 300.0, ("ECG",), labels=("NAO~"[index % 4],))

    names = {name: name for name in "NAO~"}
    records = {f"r{i}": SourceRecord(simulate=lambda i=i: load(i)) for i in range(40)}
    source = Source("made", tuple("NAO~"), names, records, ("ECG",), 300.0)
    cohort, _ = build_cohort(source, tmp_path / "c", split=SplitOptions(test_share=0.5))
    card = evaluate(baseline, cohort, QUICK, options=FEW_CHECKS)
    assert all(np.isfinite(found.raw_member_probs).all() for found in card.predictions.values())
    assert all(row.value is not None or row.reason for row in card.rows)


def test_another_split_of_the_same_data_is_noted(baseline, cohort, tmp_path):
    source = open_source("synthetic:physionet2017", records=80, seconds=5.0)
    other, _ = build_cohort(source, tmp_path / "c", split=SplitOptions(seed=7))
    assert not evaluate(baseline, other).ensembles[0].same_cohort
    assert evaluate(baseline, cohort).ensembles[0].same_cohort


def test_a_cohort_of_other_leads_is_an_error(baseline, tmp_path):
    other, _ = build_cohort(open_source("synthetic:cpsc2018", records=20, seconds=2.0), tmp_path / "c")
    with pytest.raises(CohortError, match="classes, leads and rate of baseline"):
        evaluate(baseline, other)


def test_an_empty_part_is_an_error(baseline, tmp_path):
    source = open_source("synthetic:physionet2017", records=20, seconds=2.0)
    build_cohort(source, tmp_path / "c", split=SplitOptions(test_share=0.0))
    with pytest.raises(CohortError, match="the test part has no recordings"):
        evaluate(baseline, Cohort(tmp_path / "c"))


def test_no_ensemble_and_different_scales_are_errors(baseline, tiny_study, cohort):
    with pytest.raises(ScorecardError, match="no ensemble to evaluate"):
        evaluate({}, cohort)
    other = load_ensemble(tiny_study / "runs" / "dec+part")
    other.input = InputSpec(other.input.leads, other.input.rate_hz, "unit", other.input.window_s)
    with pytest.raises(ScorecardError, match="attacks of different strength"):
        evaluate({"a": baseline, "b": other}, cohort)
    with pytest.raises(ScorecardError, match="part must be test or tune, not 'all'"):
        EvaluationOptions(part="all")


def test_ensembles_are_named_by_what_differs(tiny_study):
    one, two = (load_ensemble(tiny_study / "runs" / name) for name in ("baseline", "dec+part"))
    again = load_ensemble(tiny_study / "runs" / "baseline")
    assert list(name_ensembles([one, two])) == ["baseline", "dec+part"]
    again.card["recipe"] = again.card["recipe"].replace("seed = 0", "seed = 4", 1)
    assert list(name_ensembles([one, again])) == ["baseline seed 0", "baseline seed 4"]
    assert len(name_ensembles([one, one])) == 2
