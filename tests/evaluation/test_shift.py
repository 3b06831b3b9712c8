"""Corruptions and recordings out of distribution as conditions of an evaluation."""

from dataclasses import replace

import numpy as np
import pytest

import ecgquorum as eq
from ecgquorum import Cohort, Scorecard, evaluate, load_ensemble, metrics
from ecgquorum.cohorts import hold_out_class
from ecgquorum.corruptions import AmplitudeError, Corruption, Mains, Muscle, RightLeftArmReversal, list_corruptions
from ecgquorum.errors import CorruptionError, ScorecardError
from ecgquorum.evaluation import EvaluationOptions, merge_scorecards
from ecgquorum.evaluation.comparisons import compare_ensembles
from ecgquorum.evaluation.corruption_summary import CorruptedPredictions, collect_corruptions, summary_values
from ecgquorum.evaluation.data import open_data
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.evaluation.shift_metrics import shift_values
from ecgquorum.evaluation.transform_conditions import corruption_conditions, ood_conditions
from ecgquorum.metrics.conformal import conformal_quantile, prediction_sets
from ecgquorum.recordings import STANDARD_LEADS

OPTIONS = EvaluationOptions(masking_records=0, severities=(1, 5), shift_records=12, ood=("flat", "time-reversed"))
KINDS = ["muscle", "lead-off", "amplitude-error"]


@pytest.fixture(scope="module")
def shifted(tiny_study):
    """Both strategies under a few corruptions and sets."""
    ensembles = {name: load_ensemble(tiny_study / "runs" / name) for name in ("baseline", "dec+part")}
    return evaluate(ensembles, Cohort(tiny_study / "cohort"), corruptions=KINDS, options=OPTIONS)


def number(card, name, severity=0.0):
    return next(c for c, one in enumerate(card.conditions) if (one.attack, one.epsilon) == (name, severity))


def test_every_corruption_has_its_conditions(shifted):
    found = [(one.attack, one.epsilon) for one in shifted.conditions if one.target == "corruption"]
    assert found == [(kind, severity) for kind in KINDS for severity in (1.0, 5.0)]
    assert [one.attack for one in shifted.conditions if one.target == "out of distribution"] == [
        "flat",
        "time-reversed",
    ]
    assert str(shifted.conditions[1]) == "muscle, severity 1"
    assert {len(positions) for positions in shifted.records[1:]} == {12}
    for metric in ("accuracy", "ece", "deferred_at_10"):
        assert "muscle, severity 5" in str(shifted.table(metric))


def test_rows_are_what_the_ensemble_predicts_of_corrupted_recordings(shifted, cohort, baseline):
    c = number(shifted, "amplitude-error", 5.0)
    indices = cohort.part("test")[shifted.records[c]]
    factors = []
    for row, index in enumerate(indices):
        signal = cohort.signal(int(index))
        found = {f: baseline.predict(f * signal, rate_hz=cohort.rate_hz).member_probs[0] for f in (5.0, 0.2)}
        probs = shifted.predictions[0, c].raw_member_probs[row]
        factors.append(next(f for f, expected in found.items() if np.allclose(expected, probs, atol=1e-4)))
    assert set(factors) == {5.0, 0.2}
    accuracy = shifted.estimate(ensemble="baseline", attack="amplitude-error", epsilon=5.0, metric="accuracy")
    assert accuracy.value == pytest.approx(shifted.predictions[0, c].correct.mean())


def test_severities_of_a_recording_share_their_random_numbers(shifted, cohort, baseline):
    """The condition of one severity is the same, whichever others are evaluated with it."""
    alone = evaluate(baseline, cohort, corruptions=[Muscle(severity=5)], options=OPTIONS)
    np.testing.assert_allclose(
        alone.predictions[0, 1].raw_member_probs,
        shifted.predictions[0, number(shifted, "muscle", 5.0)].raw_member_probs,
        atol=1e-5,
    )


def test_all_stands_for_every_corruption_that_applies(cohort, baseline):
    few = replace(OPTIONS, severities=(3,), shift_records=2, ood=("all",))
    card = evaluate(baseline, cohort, corruptions=["all"], options=few)
    assert [one.attack for one in card.conditions if one.target == "corruption"] == list(list_corruptions(("ECG",)))
    assert len([one for one in card.conditions if one.target == "out of distribution"]) == 8
    assert card.examples[0].attacked.keys() == set(range(1, len(card.conditions)))


def test_every_recording_is_classified_once_under_each_condition(cohort, baseline, monkeypatch):
    counted = []
    classify = type(baseline).member_outputs
    monkeypatch.setattr(
        type(baseline), "member_outputs", lambda self, batch: counted.append(len(batch.label)) or classify(self, batch)
    )
    few = replace(OPTIONS, shift_records=5)
    card = evaluate(baseline, cohort, corruptions=["muscle", "mains"], options=few)
    assert sum(counted) == card.data.n_records + (2 * 2 + 2) * 5


def test_attacks_and_corruptions_are_kept_apart(cohort, baseline):
    both = evaluate(
        baseline, cohort, [eq.attacks.PGD(20.0, n_steps=2)], ["muscle"], options=replace(OPTIONS, severities=(5,))
    )
    attacks = evaluate(baseline, cohort, [eq.attacks.PGD(20.0, n_steps=2)], options=replace(OPTIONS, ood=()))
    wanted = {"attack": "worst of all", "metric": "accuracy"}
    assert next(both.find(**wanted)) == next(attacks.find(**wanted))
    assert not [row for row in both.rows if row.attack.startswith("mixed muscle")]


def test_the_summary_is_the_mean_over_severities_then_corruptions(shifted):
    for e, name in enumerate(("baseline", "dec+part")):
        errors = np.array(
            [[(~shifted.predictions[e, number(shifted, k, s)].correct).mean() for s in (1.0, 5.0)] for k in KINDS]
        )
        found = {
            row.metric: row
            for row in shifted.find(ensemble=name, attack="all corruptions")
            if row.detail in ("", "baseline")
        }
        assert found["accuracy"].value == pytest.approx(1 - errors.mean())
        reference = np.array(
            [[(~shifted.predictions[0, number(shifted, k, s)].correct).mean() for s in (1.0, 5.0)] for k in KINDS]
        )
        expected = (errors.sum(axis=1) / reference.sum(axis=1)).mean()
        assert found["mean_corruption_error"].value == pytest.approx(expected)
    own = next(shifted.find(ensemble="baseline", metric="mean_corruption_error"))
    assert (own.value, own.low, own.high) == (1, 1, 1)


def test_the_reference_can_be_named(cohort, baseline, tiny_study):
    pair = {"one": baseline, "two": load_ensemble(tiny_study / "runs" / "dec+part")}
    few = replace(OPTIONS, severities=(5,), ood=(), shift_records=4, reference="two")
    card = evaluate(pair, cohort, corruptions=["muscle"], options=few)
    assert next(card.find(ensemble="two", metric="mean_corruption_error")).value in (1, None)
    with pytest.raises(ScorecardError, match="no ensemble 'three' to compare with; known: one, two"):
        evaluate(pair, cohort, corruptions=["muscle"], options=replace(few, reference="three"))


def test_strategies_are_compared_on_all_corruptions_together(shifted):
    (found,) = [one for one in shifted.comparisons if one.attack == "all corruptions" and one.metric == "accuracy"]
    values = [
        shifted.estimate(ensemble=n, attack="all corruptions", metric="accuracy").value
        for n in ("baseline", "dec+part")
    ]
    assert found.values == pytest.approx(values, abs=1e-6)
    assert found.difference[0] == pytest.approx(values[0] - values[1], abs=1e-6)
    assert {one.target for one in shifted.comparisons} == {"", "corruption"}


def test_strategies_are_compared_by_the_scores_that_both_have(shifted):
    def compared(predictions):
        found = compare_ensembles(shifted.ensembles, shifted.conditions, shifted.records, predictions)
        return [one.metric for one in found if one.attack == "all corruptions"]

    without_risk = {key: replace(one, fitted_scores={}) for key, one in shifted.predictions.items()}
    assert compared(without_risk) == ["accuracy", "augrc_confidence", "augrc_mutual_information"]
    with_risk = {
        key: replace(one, fitted_scores={"risk": 1 - one.probs.max(axis=1)}) for key, one in without_risk.items()
    }
    assert compared(with_risk) == [*compared(without_risk), "augrc_risk"]


def predict(n_wrong, n_records=20):
    """Predictions of class 0, of which the first ones are wrong."""
    labels = (np.arange(n_records) < n_wrong).astype(np.int64)
    return LabelledPredictions(labels, np.tile([[0.7, 0.3]], (n_records, 1, 1)), np.zeros(n_records))


def test_corruption_errors_are_relative_to_those_of_the_reference():
    everyone = np.arange(20)
    own = CorruptedPredictions(
        everyone, predict(2), {"a": {1.0: predict(4), 5.0: predict(8)}, "b": {1.0: predict(2), 5.0: predict(6)}}
    )
    reference = CorruptedPredictions(
        everyone, predict(1), {"a": {1.0: predict(2), 5.0: predict(4)}, "b": {1.0: predict(6), 5.0: predict(10)}}
    )
    found = {one.metric: one.estimate.value for one in summary_values(own, reference, "reference")}
    assert found["mean_corruption_error"] == pytest.approx((12 / 6 + 8 / 16) / 2)
    assert found["relative_corruption_error"] == pytest.approx((20 / 4 - 2) / (22 / 4 - 1))
    spared = replace(reference, kinds=reference.kinds | {"b": {1.0: predict(0), 5.0: predict(0)}})
    found = {one.metric: one.estimate.value for one in summary_values(own, spared, "reference")}
    assert found["mean_corruption_error"] == pytest.approx(12 / 6)


def test_errors_at_other_severities_or_of_other_recordings_are_not_compared():
    own = CorruptedPredictions(np.arange(20), predict(2), {"a": {1.0: predict(4)}})
    for other in (
        replace(own, kinds={"a": {5.0: predict(4)}}),
        replace(own, positions=np.arange(1, 21)),
        replace(own, kinds={"b": {1.0: predict(4)}}),
    ):
        assert own.is_paired(own) and not own.is_paired(other)
        assert "mean_corruption_error" not in {one.metric for one in summary_values(own, other, "reference")}


def test_merged_ensembles_of_different_severities_have_no_common_summary(tiny_study, cohort):
    cards = [
        evaluate(
            {name: load_ensemble(tiny_study / "runs" / name)},
            cohort,
            corruptions=[Muscle(severity=severity)],
            options=replace(OPTIONS, ood=()),
        )
        for name, severity in (("baseline", 1), ("dec+part", 5))
    ]
    (merged,) = merge_scorecards(cards)
    errors = [row.ensemble for row in merged.find(metric="mean_corruption_error")]
    assert errors == ["baseline"] and not [one for one in merged.comparisons if one.attack == "all corruptions"]


def test_deferral_and_sets_follow_from_natural_recordings():
    """In half 0 the true class has 0.9, in half 1 it has 0.6; the sets of each half are fitted on the other."""
    halves = np.repeat([0, 1], 40)
    probs = np.where(halves[:, None] == 0, [0.9, 0.05, 0.05], [0.6, 0.2, 0.2])
    natural = LabelledPredictions(np.zeros(80, dtype=np.int64), probs[:, None], np.zeros(80))
    positions, doubtful, certain = np.array([0, 1, 78, 79]), [0.55, 0.3, 0.15], [0.95, 0.04, 0.01]
    shifted = np.array([doubtful, doubtful, doubtful, certain])
    predictions = LabelledPredictions(np.array([0, 1, 1, 1]), shifted[:, None], np.zeros(4))
    found = {
        (one.metric, one.detail): one.estimate.value
        for one in shift_values(predictions, natural, positions, halves, ("a", "b", "c"))
    }
    assert found["conformal_set_size", "90 %"] == np.mean([1, 1, 2, 1])  # up to 0.6 in half 0, up to 0.9 in half 1
    assert found["conformal_coverage", "90 %"] == np.mean([True, False, True, False])
    assert found["predicted_share", "a"] == 1 and found["predicted_share", "b"] == 0
    assert found["deferred_at_10", "confidence"] == 0.75  # 0.45 is above all natural ones
    assert found["missed_errors_at_10", "confidence"] == 0.25


def test_prediction_sets_of_a_half_are_fitted_on_the_other(shifted):
    for e in range(2):
        coverage = shifted.estimate(ensemble=shifted.ensembles[e].name, attack="natural", metric="conformal_coverage")
        assert coverage.value >= 0.75  # 0.9 up to chance, of a few recordings
        corrupted = collect_corruptions(
            shifted.conditions, shifted.records, {c: p for (i, c), p in shifted.predictions.items() if i == e}
        )
        assert corrupted.n_records == 12 and list(corrupted.kinds) == KINDS


def test_detection_rows_compare_with_the_natural_recordings_of_the_same_positions(shifted):
    c = number(shifted, "flat")
    natural = shifted.predictions[0, 0].at(shifted.records[c])
    for score, values in shifted.predictions[0, c].scores().items():
        expected = metrics.ood_auroc(natural.scores()[score], values)[0]
        row = next(shifted.find(ensemble="baseline", attack="flat", metric="ood_auroc", detail=score))
        assert row.value == pytest.approx(expected)
    assert not list(shifted.find(attack="flat", metric="accuracy"))


def test_a_scorecard_with_shift_is_saved_and_merged(shifted, tmp_path, cohort, baseline):
    again = Scorecard.load(shifted.save(tmp_path / "shift.json"))
    assert again.rows == shifted.rows and again.conditions == shifted.conditions
    other = evaluate(baseline, cohort, corruptions=["mains"], options=replace(OPTIONS, ood=()))
    (merged,) = merge_scorecards([again, other])
    assert list(merged.evaluation["corruptions"]) == [*KINDS, "mains"]
    (row,) = merged.find(ensemble="baseline", attack="all corruptions", metric="accuracy")
    conditions = [c for c, one in enumerate(merged.conditions) if one.target == "corruption"]
    assert row.value == pytest.approx(np.mean([merged.predictions[0, c].correct.mean() for c in conditions]))


def test_arrays_are_corrupted_without_their_padding(cohort, baseline):
    seen = []

    class Marked(Corruption):
        """Sets every sample to 1 mV."""

        levels, unit = (1.0,), "mV"

        def change(self, signal, rate_hz, leads, rng):
            seen.append(signal.shape)
            return np.ones_like(signal)

    batch = cohort.batch(cohort.part("test")[:4], baseline.input)
    card = evaluate(baseline, (batch.signal, batch.label), corruptions=[Marked(), AmplitudeError()], options=OPTIONS)
    assert [one.attack for one in card.conditions[1:3]] == ["Marked", "amplitude-error"]
    assert set(seen) == {(1, int(batch.valid[0].sum()))}
    assert (card.examples[0].attacked[1] == 1).all()
    np.testing.assert_allclose(card.predictions[0, 1].raw_member_probs.std(axis=0), 0, atol=1e-5)


def test_arrays_that_are_scaled_to_their_peak_are_scaled_anew(cohort, baseline):
    """As recordings of a cohort are, so that an amplitude error changes nothing."""
    baseline.input = replace(baseline.input, scaling="unit")
    batch = cohort.batch(cohort.part("test")[:3], baseline.input)
    data = open_data((batch.signal, batch.label), "test", baseline)
    (error,) = corruption_conditions([AmplitudeError(severity=5)], (5,), data.leads, None)
    positions = np.arange(3)
    changed = data.make_batch(data.change(positions, range(3), error, 0), positions, baseline.input)
    np.testing.assert_allclose(changed.signal.numpy(), batch.signal.numpy(), atol=1e-6)


def test_a_corruption_that_is_there_or_not_has_severity_1_however_it_is_given():
    for one in ("reversal-ra-la", RightLeftArmReversal(), RightLeftArmReversal(severity=5)):
        (found,) = corruption_conditions([one], (3, 5), STANDARD_LEADS, None)
        assert str(found.condition) == "reversal-ra-la, severity 1"


def test_options_are_part_of_the_name_so_that_conditions_are_not_mixed():
    found = corruption_conditions([Mains(mains_hz=50.0), Mains(mains_hz=60.0), Mains()], (3,), ("ECG",), None)
    assert [one.name for one in found] == ["mains mains_hz=50.0", "mains mains_hz=60.0", "mains"]

    class Other(Muscle):
        """Not a dataclass of its own, so every instance of a name must be the same."""

        def __eq__(self, other):
            return self is other

        __hash__ = None

    with pytest.raises(CorruptionError, match="two different sets out of distribution are called Other"):
        ood_conditions([Other(), Other()], ("ECG",), {}, None)


def test_unseen_recordings_are_drawn_at_random(cohort, baseline):
    data = open_data(hold_out_class(cohort, "O"), "test", baseline)
    n_unseen = data.unseen_classes["O"]
    (unseen,) = ood_conditions(["unseen"], data.leads, data.unseen_classes, n_unseen // 2)
    every = [data.cohort.unseen_signal("O", "test", i) for i in range(n_unseen)]
    drawn = [
        tuple(
            next(i for i, one in enumerate(every) if np.array_equal(one, signal))
            for signal in data.change(np.arange(n_unseen // 2), range(n_unseen // 2), unseen, seed)
        )
        for seed in range(4)
    ]
    assert all(len(set(one)) == n_unseen // 2 for one in drawn) and len(set(drawn)) > 1


def test_a_wrong_reference_is_refused_before_any_work(cohort, baseline, monkeypatch):
    monkeypatch.setattr(type(baseline), "member_outputs", lambda *_: pytest.fail("classified before the check"))
    with pytest.raises(ScorecardError, match="no ensemble 'x' to compare with"):
        evaluate(baseline, cohort, corruptions=["muscle"], options=replace(OPTIONS, reference="x"))


def test_wrong_names_are_refused(cohort, baseline):
    with pytest.raises(eq.EcgQuorumError, match="no corruption is called 'musle'; known: baseline-wander"):
        evaluate(baseline, cohort, corruptions=["musle"])
    with pytest.raises(CorruptionError, match="does not apply"):
        evaluate(baseline, cohort, corruptions=["missing-leads"])
    with pytest.raises(eq.EcgQuorumError, match="no ood_set is called 'cat'"):
        evaluate(baseline, cohort, options=EvaluationOptions(ood=("cat",)))
    with pytest.raises(CorruptionError, match="hold_out"):
        evaluate(baseline, cohort, options=EvaluationOptions(ood=("unseen",)))
    with pytest.raises(ScorecardError, match="some of 1 to 5"):
        EvaluationOptions(severities=(0,))


def test_prediction_sets_cover_what_they_are_fitted_on():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=500)
    labels = np.array([rng.choice(4, p=row) for row in probs])
    sets = prediction_sets(probs, conformal_quantile(probs, labels, 0.1))
    assert 0.9 <= sets[np.arange(500), labels].mean() < 0.93 and (sets.sum(axis=1) >= 1).all()
