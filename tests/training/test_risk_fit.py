"""Fitting the risk: what it is fitted on, that it ranks and estimates errors, and what is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from ecgquorum import Cohort, Ensemble, InputSpec, RiskCondition, RiskOptions, fit_risk, load_ensemble
from ecgquorum.cohorts import Batch
from ecgquorum.corruptions import AmplitudeError, list_corruptions
from ecgquorum.errors import CohortError, EcgQuorumError, FittingError, MemberError
from ecgquorum.metrics import error_auroc
from ecgquorum.training import corruption_condition, default_conditions
from ecgquorum.training.risk_conditions import RISK_CORRUPTIONS

RATE_HZ = 100.0


class MeanMember(nn.Module):
    """Classifies by the mean of the signal; its other features are how much parts of the signal differ from it."""

    def __init__(self, slope=6.0):
        super().__init__()
        self.head = nn.Linear(12, 2)
        with torch.no_grad():
            self.head.weight.zero_()
            self.head.weight[:, 0] = torch.tensor([-slope, slope])
            self.head.bias.zero_()

    def embed(self, x):
        mean = x.mean(dim=(1, 2))[:, None]
        return torch.cat([mean, x[:, 0].unflatten(1, (12, -1)).mean(dim=2)[:, :11] - mean], dim=1)

    def forward(self, x):
        return self.head(self.embed(x))


class WithoutFeatures(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(6.0))

    def forward(self, x):
        mean = self.slope * x.mean(dim=(1, 2))
        return torch.stack([-mean, mean], dim=1)


def make_cohort(n=400, seed=0, parts=None):
    """Class 1 has a positive mean; the classes overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 1, 60)) + (rng.normal(size=n) * 0.3 + 0.3 * (2 * y - 1))[:, None, None]
    parts = parts or ["train", "tune"] * (n // 2)
    return Cohort.from_arrays(x, y, rate_hz=RATE_HZ, parts=[parts[(i // 2) % len(parts)] for i in range(n)])


def make_ensemble(members=None):
    members = members or [MeanMember(), MeanMember(4.0)]
    return Ensemble(members, ("0", "1"), InputSpec(("ECG",), RATE_HZ, "none", 0.6))


def shift(ensemble, cohort, indices, seed):
    """Far from everything that was trained on, and classified at random."""
    batch = cohort.batch(indices, ensemble.input)
    rng = np.random.default_rng([seed, int(indices[0])])
    signs = torch.from_numpy(rng.choice([-1.0, 1.0], (len(indices), 1, 1)).astype(np.float32))
    return Batch(batch.signal * 8 * signs, batch.valid, batch.label)


@pytest.fixture(scope="module")
def fitted():
    ensemble, cohort = make_ensemble(), make_cohort()
    model = fit_risk(ensemble, cohort, RiskOptions([RiskCondition("shifted", shift)]))
    return ensemble, cohort, model


def test_the_card_says_what_it_was_fitted_on(fitted):
    ensemble, cohort, model = fitted
    assert ensemble.risk_model is model
    assert model.tune["n_records"] == 200 and min(model.coefficients) >= 0 and len(model.inputs) + 1 <= 6
    natural, shifted = model.tune["conditions"]
    assert (natural["name"], natural["n_records"], natural["weight"]) == ("natural", 200, 0.5)
    assert (shifted["name"], shifted["weight"]) == ("shifted", 0.5) and shifted["n_records"] <= 150
    assert model.fitted_on["data_hash"] == cohort.data_hash
    prediction = ensemble.predict_part(cohort, "tune")
    errors = prediction.label_index != cohort.labels[cohort.part("tune")]
    assert natural["error_rate"] == pytest.approx(errors.mean())
    found = natural["scores"]["confidence"]["error_auroc"]  # the mean over folds
    assert found == pytest.approx(error_auroc(errors, prediction.score("confidence"))[0], abs=0.05)


def test_natural_errors_are_not_ranked_worse_than_by_confidence(fitted):
    natural = fitted[2].tune["conditions"][0]["scores"]
    assert natural["risk"]["augrc"] <= natural["confidence"]["augrc"] + 1e-4


def test_it_sees_confident_errors_far_from_the_training_recordings(fitted):
    """Half of the shifted recordings are wrong, with a confidence of 1; the distance tells them from natural ones."""
    ensemble, _, model = fitted
    natural, shifted = model.tune["conditions"]
    assert "distance" in model.inputs
    assert shifted["mean_risk"] == pytest.approx(shifted["error_rate"], abs=0.1)
    assert natural["mean_risk"] == pytest.approx(natural["error_rate"], abs=0.05)
    assert model.tune["calibration_error"] < 0.1
    far = ensemble.predict(np.full((1, 60), 8.0), rate_hz=RATE_HZ)
    assert far.probs.max() > 0.99 and far.risk[0] > 0.2


def test_it_is_a_probability_for_natural_recordings_however_strong_the_attacks_are():
    def reverse(ensemble, cohort, indices, seed):
        batch = cohort.batch(indices, ensemble.input)
        return Batch(-batch.signal, batch.valid, batch.label)

    ensemble, cohort = make_ensemble([WithoutFeatures()]), make_cohort()
    model = fit_risk(ensemble, cohort, RiskOptions([RiskCondition("reversed", reverse)]))
    natural, reversed_ = model.tune["conditions"]
    assert reversed_["error_rate"] > 0.7
    assert natural["mean_risk"] == pytest.approx(natural["error_rate"], abs=0.01)
    prediction = ensemble.predict_part(cohort, "tune")
    errors = prediction.label_index != cohort.labels[cohort.part("tune")]
    assert prediction.risk.mean() == pytest.approx(errors.mean())


def test_the_same_seed_gives_the_same_model(fitted):
    again = make_ensemble()
    assert fit_risk(again, make_cohort(), RiskOptions([RiskCondition("shifted", shift)])) == fitted[2]


def test_members_without_features_have_a_risk_without_a_distance():
    ensemble = make_ensemble([WithoutFeatures(), WithoutFeatures()])
    model = fit_risk(ensemble, make_cohort(), RiskOptions([]))
    assert ensemble.distance is None and "distance" not in model.inputs
    with pytest.raises(EcgQuorumError, match="a member has no features"):
        ensemble.predict(np.zeros((1, 60)), rate_hz=RATE_HZ).score("distance")
    assert model.tune["conditions"][0]["weight"] == 1


def test_a_single_member_has_no_disagreement():
    model = fit_risk(make_ensemble([MeanMember()]), make_cohort(), RiskOptions([]))
    assert "mutual_information" not in model.inputs


@pytest.mark.long
def test_default_conditions_attack_and_corrupt_and_the_bundle_keeps_the_model(tmp_path):
    ensemble, cohort = make_ensemble(), make_cohort(200)
    model = fit_risk(ensemble, cohort, RiskOptions(records=20))
    names = [one["name"] for one in model.tune["conditions"]]
    assert names == ["natural", *(one.name for one in default_conditions(ensemble.input))]
    assert sum(one["weight"] for one in model.tune["conditions"]) == pytest.approx(1, abs=1e-3)
    assert np.median(ensemble.predict_part(cohort, "tune").distance) == pytest.approx(1)
    rates = {one["name"]: one["error_rate"] for one in model.tune["conditions"]}
    assert rates["pgd 0.175 on member 0"] >= rates["natural"]
    again = load_ensemble(ensemble.save(tmp_path / "bundle"), member=MeanMember)
    assert again.risk_model == model


def test_too_few_tune_recordings_or_another_cohort_are_refused():
    with pytest.raises(FittingError, match="at least 50 tune recordings, found 20"):
        fit_risk(make_ensemble(), make_cohort(40))
    ensemble = make_ensemble()
    ensemble.card = {"data_hash": "f" * 64}
    with pytest.raises(CohortError, match="ffffffffffff...; build the cohort that the model was trained on"):
        fit_risk(ensemble, make_cohort())


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("natural_weight", 0.0, "above 0 and up to 1, found 0.0"),
        ("natural_weight", 1.1, "above 0 and up to 1"),
        ("natural_weight", np.nan, "above 0 and up to 1"),
        ("folds", 1, "folds of at least 2, found 1"),
        ("repeats", 0, "repeats of at least 1"),
        ("records", 0, "records of at least 1"),
    ],
)
def test_options_that_cannot_work_are_refused(option, value, expected):
    with pytest.raises(FittingError, match=expected):
        RiskOptions(**{option: value})


def test_an_ensemble_keeps_its_risk_where_a_fit_fails():
    def fail(*_):
        raise FittingError("no such noise")

    ensemble, cohort = make_ensemble(), make_cohort()
    model, distance = fit_risk(ensemble, cohort, RiskOptions([])), ensemble.distance
    with pytest.raises(FittingError, match="no such noise"):
        fit_risk(ensemble, cohort, RiskOptions([RiskCondition("broken", fail)]))
    assert ensemble.risk_model is model and ensemble.distance is distance


def test_a_member_without_features_leaves_a_training_ensemble_in_its_mode():
    ensemble, cohort = make_ensemble([WithoutFeatures()]).train(), make_cohort(40)
    with pytest.raises(MemberError):
        ensemble.member_features(cohort.batch(range(4), ensemble.input))
    assert ensemble.training


def test_the_default_corruptions_apply_to_any_leads():
    names = [one.name for one in default_conditions(InputSpec(("ECG",), RATE_HZ, "unit", 0.6))]
    assert names[4:6] == ["baseline-wander, severity 3", "baseline-wander, severity 4"]
    assert set(RISK_CORRUPTIONS) <= set(list_corruptions(("ECG",)))
    assert not [name for name in names if name.startswith("amplitude-error")]  # scaled to the peak


def test_corruptions_depend_on_the_recording_and_the_seed_alone():
    cohort, ensemble = make_cohort(40), make_ensemble()
    condition = corruption_condition(AmplitudeError(severity=3))
    whole = condition.make(ensemble, cohort, np.arange(10), 3).signal
    part = condition.make(ensemble, cohort, np.arange(4, 6), 3).signal
    assert torch.equal(whole[4:6], part)
    factors = (whole / cohort.batch(range(10), ensemble.input).signal)[:, 0, 0]
    assert set(factors.round(decimals=3).tolist()) == {0.5, 2.0}


def test_members_with_very_many_features_have_no_distance(monkeypatch):
    monkeypatch.setattr("ecgquorum.training.risk_fit.MAX_FEATURES", 11)
    ensemble = make_ensemble()
    model = fit_risk(ensemble, make_cohort(), RiskOptions(conditions=[]))
    assert ensemble.distance is None
    assert "distance" not in model.inputs
