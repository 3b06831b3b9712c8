"""Run folders: their files, and that interruptions change nothing."""

import csv
import signal
import time

import numpy as np
import pytest
import torch

from ecgquorum import load_ensemble, train_ensemble
from ecgquorum.ensemble import information_range
from ecgquorum.errors import BundleError, EcgQuorumError, TrainingError
from ecgquorum.recipes import parse_recipe
from ecgquorum.training import check_trainable, choose_device, plan_jobs, resolve_recipe, train_job
from ecgquorum.training.epoch_watch import EpochWatch

from ..commands import Command
from ..conftest import TINY_RECIPE, Recorder

SLOW_RECIPE = TINY_RECIPE.replace("epochs = 2", "epochs = 6")


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(SLOW_RECIPE)
    return path


def arguments(recipe_file, cohort, out, *more):
    return ["train", str(recipe_file), "--cohort", str(cohort.path), "--out", str(out), "--device", "cpu", *more]


def weights(run):
    return (run / "weights.safetensors").read_bytes()


def test_a_run_writes_recipe_history_and_card(tiny_run):
    expected = {"recipe.toml", "cohort.txt", "card.json", "weights.safetensors", "history.csv", "members"}
    assert {p.name for p in tiny_run.iterdir()} == expected
    with (tiny_run / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["member"], row["epoch"]) for row in rows] == [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")]
    assert all(float(row["loss"]) > 0 and 0 <= float(row["tune_accuracy"]) <= 1 for row in rows)
    assert parse_recipe((tiny_run / "recipe.toml").read_text()) == resolve_recipe(parse_recipe(TINY_RECIPE)).recipe


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tiny_recipe, tiny_cohort, tiny_run, tmp_path):
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    train_ensemble(tiny_recipe, tiny_cohort, tmp_path / "same", device="cpu")
    assert torch.equal(before, torch.random.get_rng_state())
    assert weights(tmp_path / "same") == weights(tiny_run)
    train_ensemble(tiny_recipe.model_copy(update={"seed": 1}), tiny_cohort, tmp_path / "other", device="cpu")
    assert weights(tmp_path / "other") != weights(tiny_run)


@pytest.mark.long
def test_a_killed_run_resumes_to_the_same_bits(recipe_file, tiny_cohort, tmp_path, ecgquorum):
    ecgquorum(*arguments(recipe_file, tiny_cohort, tmp_path / "whole"))
    for attempt, (member, epochs) in enumerate(((0, 2), (1, 1))):
        out = tmp_path / f"killed-{attempt}"
        running = Command(*arguments(recipe_file, tiny_cohort, out))
        wait_for_epoch(out, member, epochs, running)
        running.kill()
        with pytest.raises(BundleError, match="has not finished"):
            load_ensemble(out)
        ecgquorum(*arguments(recipe_file, tiny_cohort, out, "--resume"))
        assert weights(out) == weights(tmp_path / "whole")
        assert untimed(out) == untimed(tmp_path / "whole")


def untimed(run):
    """The history without its clock."""
    with (run / "history.csv").open() as file:
        return [{k: v for k, v in row.items() if "seconds" not in k} for row in csv.DictReader(file)]


def wait_for_epoch(out, member, epochs, running):
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and running.poll() is None:
        history = out / "history.csv"
        if history.exists() and f"\nbase,{member},{epochs}," in history.read_text():
            return
        time.sleep(0.005)
    raise AssertionError("the run ended before it could be stopped")


def test_ctrl_c_stops_cleanly_and_explains_how_to_resume(recipe_file, tiny_cohort, tmp_path):
    out = tmp_path / "run"
    running = Command(*arguments(recipe_file, tiny_cohort, out))
    wait_for_epoch(out, 0, 1, running)
    running.send_signal(signal.SIGINT)
    assert running.wait() == 130
    said = running.stderr
    assert "Traceback" not in said
    assert f"--out {out}" in said.replace("\n", " ") and "--resume" in said


def test_resuming_a_finished_run_changes_nothing(tiny_recipe, tiny_cohort, tiny_run):
    before = {path: path.stat().st_mtime_ns for path in tiny_run.rglob("*")}
    ensemble = train_ensemble(tiny_recipe, tiny_cohort, tiny_run, resume=True)
    assert before == {path: path.stat().st_mtime_ns for path in tiny_run.rglob("*")}
    assert ensemble.card["name"] == "tiny"


def test_the_history_of_a_resumed_run_is_always_complete(tiny_recipe, tiny_cohort, tmp_path):
    class Stopper:
        def update(self, text, done, total):
            pass

        def log(self, line):
            if "found in the store" in line:
                return
            seen.append((tmp_path / "run/history.csv").read_text().count("\n") - 1)
            raise KeyboardInterrupt

    seen = []
    for attempt in range(4):
        with pytest.raises(KeyboardInterrupt):
            train_ensemble(
                tiny_recipe, tiny_cohort, tmp_path / "run", device="cpu", progress=Stopper(), resume=attempt > 0
            )
    assert seen == [1, 2, 3, 4]


def test_a_watch_logs_every_new_epoch_once(tiny_recipe, tiny_cohort, tmp_path):
    jobs = plan_jobs(check_trainable(tiny_recipe, tiny_cohort), tiny_cohort.data_hash)
    names = {job.identity: f"job {number}" for number, job in enumerate(jobs)}
    train_job(tiny_recipe, tiny_cohort, tmp_path, jobs[0].identity)
    recorder = Recorder()
    with EpochWatch(tmp_path, names, recorder) as watch:
        for job in jobs[1:]:
            train_job(tiny_recipe, tiny_cohort, tmp_path, job.identity)
            watch.look()
    epochs = range(1, tiny_recipe.training.epochs + 1)
    assert [line.partition("  loss")[0] for line in recorder.lines] == [
        f"job {number}  epoch {epoch:3d}" for number in range(1, len(jobs)) for epoch in epochs
    ]


def test_a_failed_start_leaves_no_files(tiny_recipe, tiny_cohort, tmp_path):
    wrong = [
        (tiny_recipe, {"device": "toaster"}),
        (parse_recipe(TINY_RECIPE.replace("repeat = { A = 2 }", "repeat = { B = 2 }")), {}),
        (parse_recipe(TINY_RECIPE + "[strategies.part]\nbands = [[[200, 300]]]").with_strategy("part"), {}),
        (tiny_recipe, {"resume": True}),
    ]
    for recipe, options in wrong:
        with pytest.raises(EcgQuorumError):
            train_ensemble(recipe, tiny_cohort, tmp_path / "run", **options)
        assert not (tmp_path / "run").exists()


def test_a_run_is_not_overwritten_or_resumed_with_another_recipe(tiny_recipe, tiny_cohort, tiny_run, tmp_path):
    with pytest.raises(TrainingError, match="--resume"):
        train_ensemble(tiny_recipe, tiny_cohort, tiny_run)
    with pytest.raises(TrainingError, match="started with another recipe"):
        train_ensemble(tiny_recipe.model_copy(update={"seed": 9}), tiny_cohort, tiny_run, resume=True)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(TrainingError, match="something else"):
        train_ensemble(tiny_recipe, tiny_cohort, tmp_path, resume=True)


def test_another_cohort_or_a_damaged_checkpoint_is_refused(tiny_recipe, tiny_cohort, tmp_path, monkeypatch):
    out = tmp_path / "run"
    one = tiny_recipe.model_copy(update={"members": 1})
    train_ensemble(one, tiny_cohort, out, device="cpu")
    with monkeypatch.context() as patched:
        patched.setattr(type(tiny_cohort), "data_hash", "another")
        with pytest.raises(TrainingError, match="started with another cohort"):
            train_ensemble(one, tiny_cohort, out, resume=True)
    (out / "card.json").unlink()
    (checkpoint,) = out.glob("members/*/checkpoint.safetensors")
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[:1000])
    with pytest.raises(TrainingError, match="damaged"):
        train_ensemble(one, tiny_cohort, out, resume=True)
    checkpoint.write_bytes(content.replace(b'identity\\": \\"', b'identity\\": \\"0', 1)[:-1])
    with pytest.raises(TrainingError, match="damaged"):
        train_ensemble(one, tiny_cohort, out, resume=True)


def test_the_best_epoch_on_the_tune_part_is_deployed(tiny_run, tiny_cohort):
    with (tiny_run / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    ensemble = load_ensemble(tiny_run)
    for member in (0, 1):
        best = max(float(row["tune_accuracy"]) for row in rows if int(row["member"]) == member)
        assert ensemble.card["diversity"]["member_accuracy"][member] == pytest.approx(best, abs=1e-5)


def test_the_information_range_is_that_of_the_training_set(tiny_run, tiny_cohort):
    ensemble = load_ensemble(tiny_run)
    prediction = ensemble.predict_part(tiny_cohort, "train")
    assert prediction.uncertainty.min() == pytest.approx(0, abs=1e-5)
    assert prediction.uncertainty.max() == pytest.approx(1, abs=1e-5)
    assert len(prediction) == len(tiny_cohort.part("train"))


def test_members_that_never_disagree_still_have_a_range(tiny_ensemble, tiny_cohort):
    prediction = tiny_ensemble.predict_part(tiny_cohort, "tune")
    same = type(prediction)(
        prediction.ids, prediction.classes, np.repeat(prediction.member_probs[:, :1], 2, axis=1), (0.0, 1.0)
    )
    low, high = information_range(same)
    assert high - low == pytest.approx(np.log(2))


def test_a_loss_that_is_not_finite_stops_the_run(tiny_recipe, tiny_cohort, tmp_path):
    wild = parse_recipe(TINY_RECIPE.replace("epochs = 2", 'epochs = 2\nlearning_rate = 1e30\nschedule = "constant"'))
    with pytest.raises(TrainingError, match="loss became.*learning rate"):
        train_ensemble(wild, tiny_cohort, tmp_path / "run", device="cpu")


def test_devices():
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type in ("cpu", "cuda")
    for name in ("toaster", "meta"):
        with pytest.raises(TrainingError, match="auto, cpu or cuda"):
            choose_device(name)
    if not torch.cuda.is_available():
        with pytest.raises(TrainingError, match="no CUDA device"):
            choose_device("cuda")
