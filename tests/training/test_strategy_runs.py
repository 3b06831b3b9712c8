"""Strategies trained to the end with one store: what is shared, what a run leaves, and resuming to the same bits."""

import csv
from pathlib import Path

import pytest
import safetensors.torch
import torch

from ecgquorum import load_ensemble, load_recipe, train_ensemble
from ecgquorum.errors import BundleError, TrainingError
from ecgquorum.members import FilteredMember
from ecgquorum.recipes import parse_recipe, recipe_names
from ecgquorum.training import plan_jobs, resolve_recipe
from ecgquorum.training.checkpoint import Checkpoint
from ecgquorum.training.checkpoint_store import CheckpointStore, extract_features
from tests.conftest import Recorder

from .conftest import TOY, Stopper

PAPER = ["baseline", "dec", "part", "dec+part", "adv", "dverge", "dec+adv"]


@pytest.fixture(scope="module")
def runs(toy, tiny_cohort, tmp_path_factory):
    """Every strategy of the paper and two further sums: (folder, titles of the jobs that were trained)."""
    folder = tmp_path_factory.mktemp("strategies")
    seen = {}
    for strategy in [*PAPER, "dec+part+adv", "part+dverge"]:
        recorder = Recorder()
        options = {"device": "cpu", "progress": recorder, "store": folder / "store"}
        train_ensemble(toy.with_strategy(strategy), tiny_cohort, folder / strategy, **options)
        trained = [line.partition("  epoch")[0] for line in recorder.lines if "  epoch   1 " in line]
        seen[strategy] = (folder / strategy, trained)
    return seen


def test_all_strategies_train_and_what_is_shared_is_trained_once(runs):
    trained = {strategy: titles for strategy, (_, titles) in runs.items()}
    assert trained["baseline"] == ["member 0", "member 1", "member 2"]
    assert trained["dec"] == trained["part"] == trained["dec+part"] == ["member 1", "member 2"]
    assert trained["adv"] == ["member 0 (adv)", "member 1 (adv)", "member 2 (adv)"]
    assert trained["dec+adv"] == ["member 1 (adv)", "member 2 (adv)"]  # its first member is that of adv
    assert trained["dverge"] == trained["part+dverge"] == ["all members (dverge)"]
    assert trained["dec+part+adv"] == ["member 1 (adv)", "member 2 (adv)"]
    for folder, _ in runs.values():
        assert len(load_ensemble(folder).members) == 3


def test_shared_members_have_the_same_bits(runs):
    first = {
        s: load_ensemble(runs[s][0]).members[0].state_dict() for s in ("baseline", "dec", "part", "dec+part", "adv")
    }
    for strategy in ("dec", "part", "dec+part"):
        assert all(torch.equal(first["baseline"][name], first[strategy][name]) for name in first["baseline"])
    assert not torch.equal(first["baseline"]["head.weight"], first["adv"]["head.weight"])


def test_bands_are_part_of_the_loaded_members(runs):
    first, second, third = load_ensemble(runs["dec+part"][0]).members
    assert not isinstance(first, FilteredMember)
    assert second.band_filter.bands[0] == (0.0, 15.0) and third.band_filter.bands[0] == (15.0, 30.0)
    assert not any(isinstance(member, FilteredMember) for member in load_ensemble(runs["dec"][0]).members)


def test_the_history_has_the_decorrelation_loss_and_its_time(runs):
    def rows(strategy):
        with (runs[strategy][0] / "history.csv").open() as file:
            return list(csv.DictReader(file))

    assert [(r["phase"], r["member"]) for r in rows("dec+adv")] == [
        *(("base", str(k)) for k in (0, 0, 1, 1, 2, 2)),
        *(("adv", str(k)) for k in (0, 0, 1, 1, 2, 2)),
    ]
    for row in rows("dec+adv"):
        assert (row["decorrelation"] != "") == (row["member"] != "0")
        if row["decorrelation"]:
            assert float(row["decorrelation"]) > 0
            assert 0 < float(row["decorrelation_seconds"]) < float(row["seconds"])
    assert all("decorrelation" not in row for row in rows("baseline"))
    assert rows("dverge")[-1]["member"] == "all"


def test_the_card_reports_diversity(runs):
    report = load_ensemble(runs["dec+part"][0]).card["diversity"]
    assert [pair["members"] for pair in report["pairs"]] == [[0, 1], [0, 2], [1, 2]]
    assert len(report["member_accuracy"]) == 3
    assert all(0 <= pair["linear_cka"] <= 1 for pair in report["pairs"])


def test_features_are_stored_where_recordings_look_the_same_in_every_epoch(runs, plan_of, tiny_cohort, tmp_path):
    """Those of the best checkpoint; where batches are augmented, earlier members see the batch itself."""
    assert not list((runs["dec"][0].parent / "store").rglob("features.safetensors"))
    text = TOY.replace("crop_s = 4.0\ngain = 1.2\nflip = 0.5\n", "").replace("members = 3", "members = 2")
    text = text.replace("projected = 4", 'projected = 4\nform = "paper"')
    recipe = parse_recipe(text).with_strategy("dec")
    assert not recipe.training.has_augmentation
    store, folder = CheckpointStore(tmp_path / "store"), tmp_path / "run"
    ensemble = train_ensemble(recipe, tiny_cohort, folder, device="cpu", store=tmp_path / "store")
    jobs = plan_jobs(plan_of("dec", text), tiny_cohort.data_hash)
    for job, member in list(zip(jobs, ensemble.members, strict=True))[:1]:
        path = Path(str(store.checkpoint(job.identity)))
        kept = safetensors.torch.load_file(path.with_name("features.safetensors"))
        deployed = extract_features(member, tiny_cohort, tiny_cohort.part("train"), ensemble.input)
        torch.testing.assert_close(kept["features"], deployed, atol=1e-3, rtol=1e-2)  # whose weights are rounded
        torch.nn.ModuleList([member]).load_state_dict(Checkpoint.load(path, job.identity).best)
        chosen = extract_features(member, tiny_cohort, tiny_cohort.part("train"), ensemble.input)
        torch.testing.assert_close(kept["features"], chosen)


def test_features_of_other_weights_or_damaged_ones_are_computed_again(tiny_ensemble, tiny_cohort, tmp_path):
    store, (one, other) = CheckpointStore(tmp_path), tiny_ensemble.members
    first = store.features("a" * 64, one, tiny_cohort, tiny_ensemble.input)
    assert torch.equal(first, store.features("a" * 64, one, tiny_cohort, tiny_ensemble.input))
    second = store.features("a" * 64, other, tiny_cohort, tiny_ensemble.input)
    assert not torch.equal(first, second)
    (path,) = tmp_path.rglob("features.safetensors")
    path.write_bytes(path.read_bytes()[:100])
    assert torch.equal(second, store.features("a" * 64, other, tiny_cohort, tiny_ensemble.input))


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["dec+adv", "part+dverge"])
def test_a_strategy_interrupted_after_every_epoch_gives_the_same_bits(strategy, toy, tiny_cohort, tmp_path, runs):
    out = tmp_path / "run"
    attempts = train_with_interruptions(toy.with_strategy(strategy), tiny_cohort, out)
    assert attempts > 5
    assert (out / "weights.safetensors").read_bytes() == (runs[strategy][0] / "weights.safetensors").read_bytes()


def test_hardened_training_resumes_to_the_same_bits(toy, tiny_cohort, tmp_path):
    recipe = toy.change(members=2, strategy="harden")
    train_ensemble(recipe, tiny_cohort, tmp_path / "whole", device="cpu")
    assert train_with_interruptions(recipe, tiny_cohort, tmp_path / "stopped") >= 3
    whole, stopped = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("whole", "stopped"))
    assert whole == stopped


def train_with_interruptions(recipe, cohort, out):
    for attempt in range(20):
        try:
            train_ensemble(recipe, cohort, out, device="cpu", progress=Stopper(), resume=attempt > 0)
            return attempt
        except KeyboardInterrupt:
            continue
    raise AssertionError("it never ends")


def test_a_run_remembers_its_store(toy, tiny_cohort, tmp_path, runs):
    out, store = tmp_path / "run", tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        train_ensemble(toy, tiny_cohort, out, device="cpu", progress=Stopper(), store=store)
    with pytest.raises(BundleError, match="has not finished"):
        load_ensemble(out)
    train_ensemble(toy, tiny_cohort, out, device="cpu", resume=True)
    assert not (out / "members").exists()
    assert (out / "weights.safetensors").read_bytes() == (runs["baseline"][0] / "weights.safetensors").read_bytes()


def test_impossible_training_is_refused_before_anything_is_written(tiny_cohort, tmp_path):
    for old, new, strategy, reason in (
        ("projected = 4", 'projected = 23\nform = "paper"', "dec", "at least 25 recordings .* a batch_size of 17"),
        (
            "projected = 4",
            'form = "paper"\nprojection = "regressand"',
            "dec",
            "at least 18 recordings .* a batch_size of 17",
        ),
        ("members = 3", "members = 1", "dverge", "at least 2 members, found 1"),
        ("[input]", "[input]\nleads = 12", "baseline", "recipe toy is for 12 leads, but the cohort .* has 1"),
    ):
        text = TOY.replace(old, new).replace("batch_size = 24", "batch_size = 17")
        with pytest.raises(TrainingError, match=reason):
            train_ensemble(parse_recipe(text).with_strategy(strategy), tiny_cohort, tmp_path / "run")
    with pytest.raises(TrainingError, match="cpsc2018 is for 12 leads"):
        train_ensemble(load_recipe("cpsc2018"), tiny_cohort, tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_attacks_at_the_papers_strength_in_training(name, tiny_cohort):
    recipe = load_recipe(name).with_strategy("adv+dverge")
    recipe = recipe.change(
        input=recipe.input.model_dump() | {"leads": None}, training=recipe.training.model_dump() | {"repeat": {}}
    )
    prepared = resolve_recipe(recipe).prepare(tiny_cohort)
    expected = 0.025 if "cpsc" in name else 10.0
    assert [part.epsilon for part in prepared.strategy.parts] == [expected, expected]
    assert [prepared.recipe.strategies[part]["epsilon"] for part in ("adv", "dverge")] == [expected, expected]


def test_the_command_line_takes_a_strategy(ecgquorum, tmp_path, tiny_cohort):
    (tmp_path / "r.toml").write_text(TOY)
    train = ["train", tmp_path / "r.toml", "--cohort", tiny_cohort.path]
    wrong = ecgquorum(*train, "--out", tmp_path / "x", "--strategy", "dec+magic", code=1)
    assert "no strategy is called 'magic'; known: baseline, dec" in wrong.stderr
    train += ["--store", tmp_path / "store"]
    done = ecgquorum(*train, "--out", tmp_path / "run", "--strategy", "part")
    assert load_ensemble(tmp_path / "run").card["recipe"].count('strategy = "part"') == 1
    again = ecgquorum(*train, "--out", tmp_path / "again", "--strategy", "part+dec")
    assert "member 0: found in the store, not trained again" in again.stderr
    assert "found in the store" not in done.stderr
