"""The scores "distance" and "risk" of an ensemble: closed forms, storage, and when a stored risk is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ecgquorum import Ensemble, InputSpec, load_ensemble
from ecgquorum._internal.checksums import add_checksum
from ecgquorum.cohorts import Batch
from ecgquorum.ensemble.distance import FARTHEST, FeatureDistance
from ecgquorum.ensemble.prediction import Prediction
from ecgquorum.ensemble.risk import RiskModel, risk_inputs
from ecgquorum.errors import BundleError, EcgQuorumError
from ecgquorum.metrics.distance import mahalanobis_distance

CLASSES = ("N", "A", "O")
INPUTS = ("confidence", "mutual_information", "distance")


class Plain(nn.Module):
    """A member without `embed`; its features are the input of the linear layer."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(x.unflatten(2, (4, -1)).mean(dim=(1, 3)))


def draw_probs(seed, n=20):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(3), size=(n, 2))


def make_model(coefficients=(0.7, 0.2, 1.5), inputs=INPUTS, **fitted_on):
    return RiskModel(inputs, coefficients, -1.0, fitted_on)


def make_ensemble():
    torch.manual_seed(0)
    ensemble = Ensemble([Plain(), Plain()], CLASSES, InputSpec(("ECG",), 100.0, "none", 2.0), temperature=0.8)
    rng = np.random.default_rng(0)
    ensemble.distance = FeatureDistance.fit([rng.normal(size=(50, 4)) for _ in range(2)], np.arange(50) % 3)
    return ensemble


def with_risk(ensemble):
    """A risk that was fitted on the ensemble."""
    from ecgquorum.ensemble.bundle import describe_fitted_on

    ensemble.risk_model = make_model(**describe_fitted_on(ensemble, "data"))
    return ensemble


def test_risk_by_hand():
    probs = np.array([[0.8, 0.15, 0.05]])
    members = np.array([[[0.9, 0.05, 0.05], [0.7, 0.25, 0.05]]])
    information = Prediction(("a",), CLASSES, members, (0.0, 1.0)).mutual_information
    z = -1.0 + 0.7 * np.log(0.201 / 0.801) + 0.2 * np.sqrt(information + 1e-3)
    found = make_model().estimate(probs, members, np.array([2.0]))
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-z - 1.5 * np.log(2))))
    np.testing.assert_allclose(make_model().estimate(probs, members, np.array([0.4])), 1 / (1 + np.exp(-z)))


@given(seed=st.integers(0, 100), more=st.floats(0.01, 3))
def test_risk_never_falls_where_a_doubt_grows(seed, more):
    members = draw_probs(seed)
    probs, distance = members.mean(axis=1), np.linspace(0.5, 2, 20)
    model = make_model()
    assert (model.estimate(probs, members, distance + more) >= model.estimate(probs, members, distance)).all()
    flatter = probs ** (1 / (1 + more))
    flatter /= flatter.sum(axis=1, keepdims=True)
    assert (model.estimate(flatter, members, distance) >= model.estimate(probs, members, distance)).all()


def test_a_prediction_without_a_model_says_so():
    members = draw_probs(1)
    plain = Prediction(("",) * 20, CLASSES, members, (0.0, 1.0), 0.5)
    np.testing.assert_allclose(plain.risk, 1 - plain.probs.max(axis=1))
    np.testing.assert_array_equal(plain.score("risk"), plain.risk)
    assert plain.risk_source == "1 - max p"
    with pytest.raises(EcgQuorumError, match="ecgquorum calibrate"):
        plain.score("distance")
    fitted = replace(plain, risk_model=make_model(), distance=np.ones(20))
    np.testing.assert_allclose(fitted.risk, make_model().estimate(fitted.probs, members, np.ones(20)))
    assert fitted.risk_source == "fitted" and (fitted.score("distance") == 1).all()
    with pytest.raises(EcgQuorumError, match="feature distance"):
        risk_inputs(INPUTS, plain.probs, members, None)


@pytest.mark.parametrize(
    ("coefficients", "inputs"), [((-0.1,), ("confidence",)), ((1.0,), ("mood",)), ((), ()), ((np.nan,), ("distance",))]
)
def test_models_that_are_not_monotone_or_unknown_are_refused(coefficients, inputs):
    with pytest.raises(BundleError, match="expected a risk"):
        make_model(coefficients, inputs)


def test_the_distance_of_an_ensemble_is_the_mean_over_its_members():
    ensemble = make_ensemble()
    x = torch.randn(6, 1, 200)
    probs, found = ensemble.member_outputs(Batch(x, x != 0, torch.zeros(6, dtype=torch.int64)))
    features = x.unflatten(2, (4, -1)).mean(dim=(1, 3)).double().numpy()
    distance = ensemble.distance
    by_member = [mahalanobis_distance(features, distance.means[k], distance.whitenings[k]) for k in range(2)]
    np.testing.assert_allclose(found, np.mean(by_member, axis=0), rtol=1e-5)
    assert probs.shape == (6, 2, 3)
    np.testing.assert_allclose(distance.rescale(4.0).measure([features] * 2), found / 4, rtol=1e-5)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e300])
def test_features_that_overflow_have_a_large_distance_and_a_high_risk(value):
    features = np.zeros((2, 4))
    features[1, 0] = value
    found = make_ensemble().distance.measure([features, np.zeros((2, 4))])
    assert found[0] < 10 and found[1] == FARTHEST
    probs = np.array([[0.9, 0.05, 0.05]] * 2)
    assert make_model().estimate(probs, probs[:, None], found)[1] > 0.99


def test_a_long_recording_has_the_mean_of_its_windows():
    ensemble = with_risk(make_ensemble())
    x = np.random.default_rng(0).normal(size=(1, 400))
    whole = ensemble.predict(x, rate_hz=100.0)
    halves = [ensemble.predict(part, rate_hz=100.0) for part in (x[:, :200], x[:, 200:])]
    np.testing.assert_allclose(whole.distance, np.mean([one.distance for one in halves], axis=0))
    (result,) = whole.results()
    assert (result.distance, result.risk) == (round(whole.distance[0], 5), round(whole.risk[0], 5))


def test_both_scores_are_stored_in_a_bundle(tmp_path):
    ensemble = with_risk(make_ensemble())
    again = load_ensemble(ensemble.save(tmp_path / "bundle"), member=Plain)
    assert again.risk_model == ensemble.risk_model and again.risk_model.sha256 == ensemble.risk_model.sha256
    x = np.random.default_rng(0).normal(size=(3, 1, 200))
    expected, found = (one.predict(x, rate_hz=100.0) for one in (ensemble, again))
    np.testing.assert_array_equal(found.distance, expected.distance)
    np.testing.assert_array_equal(found.risk, expected.risk)
    plain = load_ensemble(tmp_path / "bundle", member=Plain, risk=False)
    assert plain.risk_model is None and plain.distance is None


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"temperature": 1.1}, "temperature"),
        ({"classes": ["N", "O", "A"]}, "classes"),
        ({"data_hash": "other"}, "data"),
        ({"distance": None}, "distance"),
    ],
)
def test_a_risk_that_was_fitted_on_something_else_is_refused(tmp_path, changes, what):
    path = with_risk(make_ensemble()).save(tmp_path / "bundle")
    card = {key: value for key, value in (json.loads((path / "card.json").read_text()) | changes).items() if value}
    (path / "card.json").write_text(json.dumps(add_checksum(card, "card_sha256")))
    with pytest.raises(
        BundleError, match=f"its risk was fitted with other {what}; fit it again with: ecgquorum calibrate"
    ):
        load_ensemble(path, member=Plain)
    assert load_ensemble(path, member=Plain, risk=False).risk_model is None


def test_an_ensemble_that_changed_after_the_fit_is_not_saved(tmp_path):
    ensemble = with_risk(make_ensemble())
    with torch.no_grad():
        ensemble.members[0].head.bias += 1
    with pytest.raises(BundleError, match="other weights"):
        ensemble.save(tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_damaged_distance_is_detected(tmp_path):
    path = with_risk(make_ensemble()).save(tmp_path / "bundle")
    content = bytearray((path / "distance.safetensors").read_bytes())
    content[-3] ^= 1
    (path / "distance.safetensors").write_bytes(content)
    with pytest.raises(BundleError, match="distance.safetensors"):
        load_ensemble(path, member=Plain)
