"""Several ranks train as one process does: the same numbers up to rounding, one set of files, one error line."""

import dataclasses
import importlib.util
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn
from typer.testing import CliRunner

from ecgquorum import Cohort, build_cohort, load_ensemble, open_source
from ecgquorum.cli import app
from ecgquorum.errors import ClusterError, TrainingError
from ecgquorum.parallel import distributed
from ecgquorum.parallel.batch_layers import shard_network
from ecgquorum.parallel.ray_train import run_on_ranks
from tests.training.test_run_folder import untimed, wait_for_epoch, weights

from ..conftest import REPOSITORY
from . import rank_cases

EXACT = {"rtol": 1e-7, "atol": 1e-9}
RUN_RECIPE = """
name = "ranks"
members = 2
strategy = "dec+part+harden"
[input]
window_s = 2.5
[member]
width = 0.125
[training]
epochs = 3
batch_size = 19
[strategies.dec]
projected = 4
[strategies.harden]
epsilon = 50.0
"""


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """48 simulated recordings of 1.5 to 2.5 s, of which 38 to train on.

    Batches of 9 cannot be dealt evenly to two ranks, and the last one, of 2, not at all to three.
    """
    source = open_source("synthetic:physionet2017", records=48, seconds=2.5)

    def shorter(load, seconds):
        def loaded():
            recording = load()
            return dataclasses.replace(recording, signal=recording.signal[:, : int(seconds * recording.rate_hz)])

        return loaded

    records = {
        key: dataclasses.replace(one, simulate=shorter(one.simulate, (1.5, 1.8, 2.15, 2.5)[i % 4]))
        for i, (key, one) in enumerate(source.records.items())
    }
    built, _ = build_cohort(dataclasses.replace(source, records=records), tmp_path_factory.mktemp("dealt") / "cohort")
    assert len(built.part("train")) % 9 == 2
    return built


def start_ranks(n_ranks, *command, **options):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_ranks)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    given = {"cwd": REPOSITORY, "env": environment, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*launcher, "-m", *map(str, command)], **given | options)


def finish(running, expected=0):
    out, err = running.communicate(timeout=240)
    assert running.returncode == expected, err
    return out, err


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def by_ranks(request, cohort, tmp_path_factory):
    """What each rank found, and how many there were."""
    out = tmp_path_factory.mktemp("by-ranks")
    finish(start_ranks(request.param, "tests.parallel.rank_cases", cohort.path, out))
    return [safetensors.torch.load_file(out / f"rank{rank}.safetensors") for rank in range(request.param)]


@pytest.fixture(scope="module")
def by_one(cohort, tmp_path_factory):
    return rank_cases.run_cases(cohort, tmp_path_factory.mktemp("by-one"), rank_cases.CASES)


def test_every_rank_ends_with_the_same_numbers(by_ranks):
    for other in by_ranks[1:]:
        assert other.keys() == by_ranks[0].keys()
        assert all(torch.equal(by_ranks[0][name], tensor) for name, tensor in other.items())


@pytest.mark.parametrize("case", rank_cases.CASES, ids=lambda case: "-".join(map(str, case)))
def test_ranks_train_as_one_process_does(by_ranks, by_one, case):
    """Weights, batch-norm statistics and losses after whole epochs of padded recordings and ragged last batches."""
    if case not in rank_cases.choose_cases(len(by_ranks)):
        pytest.skip("two ranks do this one")
    prefix = f"{case[0]} {case[1]}/"
    names = [name for name in by_one if name.startswith(prefix)]
    assert len(names) > 10
    for name in names:
        torch.testing.assert_close(
            by_ranks[0][name], by_one[name], **EXACT, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("dimensions", [1, 2])
def test_batch_norm_is_over_the_whole_batch(by_ranks, dimensions):
    found = {key.partition("/")[2]: value for key, value in by_ranks[0].items() if key.startswith(f"norm{dimensions}/")}
    norm = (nn.BatchNorm1d if dimensions == 1 else nn.BatchNorm2d)(3).double()
    norm.weight.data, norm.bias.data = found["weight"], found["bias"]
    x = found["x"].requires_grad_()
    y = norm(x)
    (y.tanh() * found["direction"]).sum().backward()
    expected = {"y": y, "to_x": x.grad, "to_weight": norm.weight.grad, "to_bias": norm.bias.grad, **norm.state_dict()}
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor.detach(), **EXACT, msg=lambda text, name=name: f"{name}: {text}")


def test_any_network_trains_over_ranks_as_in_one_process(by_ranks, by_one):
    names = [name for name in by_one if name.startswith("any/")]
    assert any("num_batches_tracked" in name for name in names)
    for name in names:
        torch.testing.assert_close(by_ranks[0][name], by_one[name], **EXACT)


def test_layers_are_restored_after_the_block():
    network = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    keys = list(network.state_dict())
    with shard_network(network, distributed.Share(4, 0, 2, 1)):
        assert all("forward" in layer.__dict__ for layer in network) and list(network.state_dict()) == keys
    assert not any("forward" in layer.__dict__ for layer in network)


def test_a_single_process_is_one_rank():
    share = distributed.shard_batch(5)
    x = torch.randn(5, 2)
    assert (distributed.rank(), distributed.n_ranks(), share.weight, share.copies) == (0, 1, 1.0, 1)
    assert torch.equal(x[share.rows()], x) and torch.equal(share.gather(x), x)
    norm = nn.BatchNorm1d(2)
    with shard_network(norm, share):
        assert "forward" not in norm.__dict__, "one process pays nothing"
    assert distributed.totals(1.5, 2.0) == [1.5, 2.0]
    assert distributed.is_first() and distributed.is_first_to_fail()


@pytest.mark.parametrize(("n_records", "n_ranks"), [(7, 2), (16, 4), (5, 5), (3, 8)])
def test_all_recordings_are_distributed_evenly(monkeypatch, n_records, n_ranks):
    monkeypatch.setattr(distributed, "n_ranks", lambda: n_ranks)
    shares = []
    for rank in range(n_ranks):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        shares.append(distributed.shard_batch(n_records))
    assert sum(share.weight / share.copies for share in shares) == pytest.approx(1)
    rows = [list(range(n_records)[share.rows()]) for share in shares]
    if n_records >= n_ranks:
        assert sorted(row for some in rows for row in some) == list(range(n_records))
        assert max(map(len, rows)) - min(map(len, rows)) <= 1
        attacked = [len(range(n_records)[share.rows(n_records // 2)]) for share in shares]
        assert sum(attacked) == n_records // 2 and max(attacked) - min(attacked) <= 1
    else:
        assert rows == [list(range(n_records))] * n_ranks


@pytest.fixture(scope="module")
def alone(cohort, tmp_path_factory):
    """The folder of a run by one process, by the command line; the recipe is beside it."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "recipe.toml").write_text(RUN_RECIPE)
    done = CliRunner().invoke(app, arguments(folder, cohort, "alone"))
    assert done.exit_code == 0, done.output
    return folder / "alone"


def arguments(folder, cohort, out, *more):
    recipe = folder / "recipe.toml"
    return ["train", str(recipe), "--cohort", str(cohort.path), "--out", str(folder / out), "--device", "cpu", *more]


def assert_same_run(found, expected, cohort):
    one, other = load_ensemble(found), load_ensemble(expected)
    one_recording = 1.01 / len(cohort.part("tune"))  # whose answer may be decided by rounding
    assert one.card["tune_accuracy"] == pytest.approx(other.card["tune_accuracy"], abs=one_recording)
    assert one.card["ranks"] == 2 and "ranks" not in other.card
    probs = [ensemble.predict_part(Cohort(cohort.path), "test").member_probs for ensemble in (one, other)]
    np.testing.assert_allclose(*probs, atol=1e-2)
    for mine, theirs in zip(untimed(found), untimed(expected), strict=True):
        assert (mine["phase"], mine["member"], mine["epoch"]) == (theirs["phase"], theirs["member"], theirs["epoch"])
        assert float(mine["tune_accuracy"]) == pytest.approx(float(theirs["tune_accuracy"]), abs=one_recording)
        # single precision: signs of tiny gradients differ; the cases in double precision check the method
        assert float(mine["loss"]) == pytest.approx(float(theirs["loss"]), rel=1e-2)


@pytest.fixture(scope="module")
def two(alone, cohort):
    """The folder of the same run by two ranks."""
    out, _ = finish(start_ranks(2, "ecgquorum", *arguments(alone.parent, cohort, "two")))
    assert out.count("accuracy on the tune part") == 1
    return alone.parent / "two"


def test_torchrun_trains_as_one_process_does(two, alone, cohort):
    assert_same_run(two, alone, cohort)
    assert not list(two.rglob("*.partial"))


@pytest.mark.slow
def test_interrupted_ranks_resume_to_the_same_bits(two, cohort):
    folder = two.parent
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = start_ranks(2, "ecgquorum", *arguments(folder, cohort, "stopped"), **quiet)
    wait_for_epoch(folder / "stopped", 1, 1, running)
    running.send_signal(signal.SIGINT)
    running.wait(timeout=60)
    assert not (folder / "stopped" / "card.json").exists()
    _, err = finish(start_ranks(2, "ecgquorum", *arguments(folder, cohort, "stopped", "--resume")))
    assert err.count("member 0: found in the store") == 1
    assert weights(folder / "stopped") == weights(two)


@pytest.mark.slow
def test_an_error_of_all_ranks_is_printed_once(alone, cohort):
    _, err = finish(start_ranks(2, "ecgquorum", *arguments(alone.parent, cohort, "alone")), expected=1)
    assert err.count("there is a run already") == 1
    assert "ecgquorum/" not in err, "no traceback of ours"


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_others(alone, cohort):
    folder = alone.parent
    (folder / "long.toml").write_text(RUN_RECIPE.replace("epochs = 3", "epochs = 500"))
    command = arguments(folder, cohort, "killed")
    command[1] = str(folder / "long.toml")
    running = start_ranks(2, "ecgquorum", *command)
    wait_for_epoch(folder / "killed", 0, 2, running)
    children = subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True, check=True)
    os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)
    _, err = finish(running, expected=1)
    assert err.count("another rank has stopped") <= 1
    assert "ecgquorum/" not in err, "no traceback of ours"


@pytest.mark.parametrize("missing", ["ray", "pyarrow"])
def test_without_ray_train_one_line_says_what_to_install(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ClusterError, match=rf'Ray Train needs .*{missing}.*"ecgquorum\[cluster\]"'):
        run_on_ranks(print, (), 2, scratch=tmp_path / "ray.partial")


@pytest.mark.skipif(
    not (importlib.util.find_spec("ray") and importlib.util.find_spec("pyarrow")),
    reason="Ray Train is not installed: pip install ecgquorum[cluster]",
)
def test_ray_train_trains_as_one_process_does(alone, cohort):
    folder = alone.parent
    command = [sys.executable, "-m", "ecgquorum", *arguments(folder, cohort, "ray", "--ranks", "2")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=REPOSITORY, timeout=280)
    assert done.returncode == 0, done.stderr
    assert [line[:19] for line in done.stderr.splitlines() if line.startswith("member ")] == [
        f"member {member}  epoch   {epoch}" for member in (0, 1) for epoch in (1, 2, 3)
    ]
    assert_same_run(folder / "ray", alone, cohort)
    assert json.loads((folder / "ray" / "card.json").read_text())["ranks"] == 2
    assert not (folder / "ray" / "ray.partial").exists()
    again = CliRunner().invoke(app, arguments(folder, cohort, "ray", "--ranks", "2"))
    assert isinstance(again.exception, TrainingError) and "there is a run already" in str(again.exception)
