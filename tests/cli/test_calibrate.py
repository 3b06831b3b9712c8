"""`calibrate`: the risk of a bundle, its policy, and what `card`, `policy show` and `predict` say about them."""

import json

import pytest

from ecgquorum import SplitOptions, build_cohort, load_ensemble, open_source, read_card, train_ensemble
from ecgquorum.errors import PolicyError
from ecgquorum.triage import policy_of

pytestmark = pytest.mark.usefixtures("quick_risk")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """120 simulated recordings of 5 s, half of them to tune on."""
    source = open_source("synthetic:physionet2017", records=120, seconds=5.0)
    return build_cohort(source, tmp_path_factory.mktemp("half") / "cohort", split=SplitOptions(tune_share=0.5))[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_recipe, cohort):
    """A run that was trained without a risk."""
    out = tmp_path_factory.mktemp("plain") / "run"
    train_ensemble(tiny_recipe.change(risk=False), cohort, out)
    return out


def test_a_risk_is_fitted_stored_and_used(ecgquorum, run, cohort, tmp_path):
    assert "risk" not in read_card(run) and not (run / "distance.safetensors").exists()
    ecgquorum(
        "policy", "fit", run, "--cohort", cohort.path, "--kind", "budget", "--value", "20%", "--out", tmp_path / "p"
    )
    said = ecgquorum("calibrate", tmp_path / "p", "--cohort", cohort.path, "--out", tmp_path / "c").stdout
    assert "natural" in said and "pgd 50 on member 0" in said and "electrode-motion" in said
    ensemble = load_ensemble(tmp_path / "c")
    card = ensemble.card
    assert card["weights_sha256"] == card["risk"]["fitted_on"]["weights_sha256"] == read_card(run)["weights_sha256"]
    assert policy_of(ensemble).score == "risk" and policy_of(ensemble).tune.risk_model == ensemble.risk_model.sha256

    shown = ecgquorum("policy", "show", tmp_path / "c").stdout
    n_tune = len(cohort.part("tune"))
    assert f"On the {n_tune} tune recordings it would have deferred" in shown and "risk is above" in shown
    page = ecgquorum("card", tmp_path / "c").stdout
    assert "**Risk**" in page and "1 - max p" not in page.split("**Risk**")[1].splitlines()[0]
    assert "**Risk**: 1 - the largest calibrated probability" in ecgquorum("card", run).stdout

    (result,) = json.loads(ecgquorum("predict", "sample:af", "--model", tmp_path / "c", "--json").stdout)
    assert 0 <= result["risk"] <= 1 and result["distance"] > 0
    (plain,) = json.loads(ecgquorum("predict", "sample:af", "--model", run, "--json").stdout)
    assert (
        plain["risk"] == pytest.approx(1 - max(plain["probabilities"].values()), abs=2e-5) and plain["distance"] is None
    )


@pytest.mark.parametrize("score", ["risk", "distance"])
def test_a_policy_of_another_risk_or_distance_is_refused(run, score):
    ensemble = load_ensemble(run)
    figures = {"n_records": 1, "deferred": 0, "errors": 0, "caught": 0, "risk_model": "other"}
    ensemble.card["policy"] = {"kind": "threshold", "threshold": 0.1, "score": score, "tune": figures}
    with pytest.raises(PolicyError, match=f"fitted with another {score}; fit it again"):
        policy_of(ensemble)


@pytest.mark.long
def test_training_fits_the_risk_where_there_are_enough_tune_recordings(tiny_recipe, cohort, tmp_path):
    ensemble = train_ensemble(tiny_recipe, cohort, tmp_path / "run")
    assert ensemble.risk_model is not None and ensemble.distance is not None
    assert ensemble.risk_model.tune["n_records"] == len(cohort.part("tune"))
    assert ensemble.predict_part(cohort, "test").risk_source == "fitted"


def test_a_folder_that_is_not_new_is_refused_before_the_fit(ecgquorum, run, tiny_cohort, tmp_path):
    """The cohort is another too, which the fit would say."""
    (tmp_path / "file").write_text("mine")
    said = ecgquorum("calibrate", run, "--cohort", tiny_cohort.path, "--out", tmp_path, code=1).stderr
    assert "expected a new folder" in said


def test_another_cohort_is_refused(ecgquorum, run, tiny_cohort, tmp_path):
    said = ecgquorum("calibrate", run, "--cohort", tiny_cohort.path, "--out", tmp_path / "c", code=1).stderr
    assert "build the cohort that the model was trained on" in said and not (tmp_path / "c").exists()
