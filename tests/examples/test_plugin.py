"""A separate package adds a member, an attack, a corruption, a strategy and a reader by entry points."""

import csv
import json
import shutil
import tomllib

import numpy as np
import pytest

import ecgquorum as eq
from tests.commands import Command
from tests.conftest import REPOSITORY

PLUGIN = REPOSITORY / "examples" / "plugin"
RECIPE = """
name = "with-plugin"
members = 2
strategy = "dec+logit-penalty"
[input]
window_s = 6.0
[member]
kind = "plain"
channels = 4
[training]
epochs = 1
batch_size = 16
[strategies.dec]
projected = 4
[strategies.logit-penalty]
weight = 0.02
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the package as pip would install it: its code, and its entry points as metadata."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    shutil.copytree(PLUGIN / "src" / "ecgquorum_example", folder / "ecgquorum_example")
    metadata = folder / f"ecgquorum_example-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {path}\n" for name, path in points.items()) for group, points in groups
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def run(site, tmp_path_factory):
    """Run the command line in a process of its own that has the package installed."""
    folder = tmp_path_factory.mktemp("work")

    def run(*arguments, code=0):
        done = Command(*arguments, cwd=folder, packages=[site], threads=1)
        assert done.wait() == code, done.stderr
        return done.stdout + done.stderr

    run.folder = folder
    return run


@pytest.fixture(scope="module")
def trained(run):
    (run.folder / "recipe.toml").write_text(RECIPE)
    source = ["synthetic:physionet2017", "--records", 60, "--seconds", 5]
    run("cohort", "build", *source, "--out", "cohort")
    run("train", "recipe.toml", "--cohort", "cohort", "--out", "run")
    return run.folder / "run"


def test_the_member_and_the_strategy_train_by_name(trained):
    card = eq.read_card(trained)
    assert card["members"] == [{"kind": "plain", "options": {"channels": 4}}] * 2
    assert "logit-penalty" in card["recipe"]


def test_the_bundle_loads_only_by_name(run, trained):
    sample = "sample:af"
    said = run("predict", sample, "--model", trained, code=1)
    assert "not built in" in said and "\n" not in said.strip()
    assert "probability" in run("predict", sample, "--model", trained, "--member", "plain")
    assert "probability" in run("predict", sample, "--model", trained, "--member", "ecgquorum_example.member:PlainNet")
    assert "no member is called 'plane'" in run("predict", sample, "--model", trained, "--member", "plane", code=1)


def test_the_attack_is_evaluated_by_name(run, trained):
    options = ["--attack", "wander@ensemble", "--epsilons", "50,500", "--member", "plain"]
    run("evaluate", trained, "--cohort", "cohort", *options, "--out", "card.json")
    card = eq.Scorecard.load(run.folder / "card.json")
    attacked = list(card.find(attack="wander", metric="accuracy"))
    assert [row.epsilon for row in attacked] == [50.0, 500.0]
    assert all(0 <= row.value <= 1 for row in attacked)


def test_the_corruption_is_evaluated_by_name_and_is_not_among_all(run, trained):
    options = ["--member", "plain", "--corruptions", "tremor", "--severities", "5", "--records", 4]
    said = run("evaluate", trained, "--cohort", "cohort", *options, "--out", "shift.json")
    card = eq.Scorecard.load(run.folder / "shift.json")
    assert [str(one) for one in card.conditions] == ["natural", "tremor, severity 5"] and "tremor" in said
    assert "tremor" in run("corruptions")
    assert "tremor" not in eq.corruptions.list_corruptions(("ECG",))


def test_triage_reads_the_new_format_in_its_sandbox(run, trained):
    folder = run.folder / "in"
    folder.mkdir()
    samples = eq.simulate("A", seed=1, seconds=6, leads=("ECG",), rate_hz=250).recording.signal[0]
    (folder / "good.lines").write_text("250\n" + "\n".join(f"{value:.4f}" for value in samples))
    (folder / "bad.lines").write_text("250\n0.1\nno number\n")
    run("triage", "in", "--model", trained, "--member", "plain", "--budget", "10%", "--out", "sorted", code=3)
    with (run.folder / "sorted" / "worklist.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows["good"]["label"] in ("N", "A", "O", "~")
    assert rows["bad"]["decision"] == "unreadable" and "expected one number on each line" in rows["bad"]["reason"]


def test_the_objects_work_from_python(site, trained, monkeypatch):
    monkeypatch.syspath_prepend(site)
    from ecgquorum_example.attack import BaselineWander
    from ecgquorum_example.member import PlainNet

    ensemble = eq.load_ensemble(trained, member=PlainNet)
    cohort = eq.Cohort(trained.parent / "cohort")
    batch = cohort.batch(cohort.part("test"), ensemble.input)
    moved = BaselineWander(epsilon=200.0)(ensemble, batch.signal, batch.label, batch.valid)
    assert 0 < (moved - batch.signal).abs().max() <= 200 * (1 + 1e-5)
    card = eq.evaluate(ensemble, (batch.signal, batch.label), attacks=[BaselineWander(epsilon=200.0)])
    accuracies = [row.value for row in card.find(metric="accuracy")]
    assert np.isfinite([value for value in accuracies if value is not None]).all()
    assert json.dumps([one.to_json() for one in ensemble.predict("sample:af").results()])
