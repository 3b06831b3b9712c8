"""The shipped ensembles and their model cards."""

import json
import subprocess
import sys

import pytest

from ecgquorum import (
    Scorecard,
    SplitOptions,
    build_cohort,
    load_ensemble,
    model_card,
    open_source,
    simulate,
    write_results,
)
from ecgquorum.cli import DEFAULT_MODEL
from ecgquorum.ensemble import bundle_names, find_bundle
from ecgquorum.recipes import load_recipe, parse_recipe
from ecgquorum.training import plan_jobs, resolve_recipe

from .conftest import REPOSITORY

NAMES = ["cpsc2018", "physionet2017", "physionet2017-robust"]


def test_the_bundles_that_ship_and_the_default():
    assert bundle_names() == NAMES
    assert DEFAULT_MODEL == "physionet2017"


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_bundle_is_small_valid_and_predicts(name):
    ensemble = load_ensemble(name)
    files = list(find_bundle(name).iterdir())
    assert {file.name for file in files} == {"card.json", "distance.safetensors", "weights.safetensors"}
    assert sum(file.stat().st_size for file in files) <= 8e6
    assert ensemble.card["name"] == name and len(ensemble.members) == load_recipe(name).members
    assert ensemble.card["precision"] == "half" and ensemble.card["rounding_moved"] <= 1e-3
    assert ensemble.card["policy"]["score"] == "risk"  # so that `triage` needs no option
    prediction = ensemble.predict(simulate(ensemble.classes[0], seed=1, leads=ensemble.input.leads).recording)
    assert prediction.probs.shape == (1, len(ensemble.classes))
    assert prediction.temperature == ensemble.card["temperature"] != 1.0


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_bundle_was_trained_by_the_recipe_that_ships(name):
    """Its training jobs have the same identity, so that `ecgquorum train` reproduces it."""
    card = load_ensemble(name).card
    trained, shipped = (resolve_recipe(recipe) for recipe in (parse_recipe(card["recipe"]), load_recipe(name)))
    assert plan_jobs(trained, card["data_hash"]) == plan_jobs(shipped, card["data_hash"])


@pytest.mark.parametrize("name", NAMES)
def test_its_model_card_is_current(name):
    page = REPOSITORY / "docs/models" / f"{name}.md"
    assert page.read_text() == model_card(load_ensemble(name).card), "run `make docs`"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("results", ("physionet2017-replica", "cpsc2018-replica")),
        ("results-shipped", ("physionet2017", "cpsc2018")),
        ("results-cpsc2018-seven", ("cpsc2018-seven",)),
        ("results-robust", ("physionet2017-robust",)),
        ("results-hardened", ("physionet2017-compact",)),
        ("results-shift", ("physionet2017-shift", "cpsc2018-shift")),
    ],
)
def test_the_results_pages_are_current(page, names, tmp_path):
    results = REPOSITORY / "docs/results"
    cards = [Scorecard.load(results / f"{name}.json", rows_only=True) for name in names]
    intro = REPOSITORY / f"docs/{page}-intro.md"
    text = intro.read_text() if intro.exists() else ""
    found = write_results(cards, tmp_path / "results.md", intro=text).read_text()
    assert found == (REPOSITORY / f"docs/{page}.md").read_text(), "run `make docs`"


@pytest.mark.parametrize("name", NAMES)
def test_the_card_and_the_results_page_are_about_the_same_weights(name):
    scorecard = Scorecard.load(REPOSITORY / f"docs/results/{name}.json", rows_only=True)
    card = load_ensemble(name).card
    assert card["weights_sha256"] in {one.model for one in scorecard.ensembles}
    assert card["results"]["data_hash"] == card["data_hash"] == scorecard.data.data


def test_predict_needs_only_a_file(write_record, tmp_path):
    recording = simulate("N", seed=2, leads=("ECG",)).recording
    record = write_record("A1", recording.signal, rate_hz=recording.rate_hz)
    command = [sys.executable, "-m", "ecgquorum", "predict", f"{record}.hea", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    (row,) = json.loads(done.stdout)
    assert sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-4)
    assert sum(row["raw_probabilities"].values()) == pytest.approx(1, abs=1e-4)  # each is rounded


@pytest.mark.slow
@pytest.mark.data
def test_the_published_accuracy_is_reproduced(real_data, tmp_path):
    source = open_source(str(real_data / "physionet2017/training2017.zip"))
    ids = real_data / "physionet2017/paper_validation_ids.txt"
    cohort, _ = build_cohort(source, tmp_path / "cohort", split=SplitOptions(ids))
    for name in ("physionet2017", "physionet2017-robust"):
        ensemble = load_ensemble(name)
        assert cohort.data_hash == ensemble.card["data_hash"]
        right = ensemble.predict_part(cohort, "test").label_index == cohort.labels[cohort.part("test")]
        rows = ensemble.card["results"]["rows"]
        (published,) = [row["value"] for row in rows if (row["attack"], row["metric"]) == ("natural", "accuracy")]
        assert right.mean() == pytest.approx(published, abs=1.5 / len(right)), name
