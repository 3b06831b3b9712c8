"""Several ranks train as one process does: the same numbers up to rounding, one set of files, one error line."""

import os
import signal
import subprocess
import sys

import pytest
import safetensors.torch
import torch
from torch import nn

from tests.training.test_run_folder import wait_for_epoch, weights

from ..commands import Command, free_port
from ..conftest import REPOSITORY
from . import rank_cases
from .rank_runs import RUN_RECIPE, arguments, assert_same_run

pytestmark = pytest.mark.long
EXACT = {"rtol": 1e-7, "atol": 1e-9}


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
    out, n_ranks = tmp_path_factory.mktemp("by-ranks"), request.param
    group = {"WORLD_SIZE": str(n_ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [
        Command(cohort.path, out, function=rank_cases.main, environment=group | {"RANK": str(rank)})
        for rank in range(n_ranks)
    ]
    for rank in ranks:
        assert rank.wait() == 0, rank.stderr
    return [safetensors.torch.load_file(out / f"rank{rank}.safetensors") for rank in range(n_ranks)]


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


def test_batch_norm_of_bfloat16_keeps_its_statistics_in_float32(by_ranks):
    found = {key.partition("/")[2]: value for key, value in by_ranks[0].items() if key.startswith("lowered/")}
    norm = nn.BatchNorm1d(3)
    norm.weight.data, norm.bias.data = found["weight"], found["bias"]
    x = found["x"].requires_grad_()
    y = norm(x)
    (y.tanh() * found["direction"]).sum().backward()
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(found[name], norm.state_dict()[name], rtol=1e-5, atol=1e-6)
    rounded = {"y": y, "to_x": x.grad, "to_weight": norm.weight.grad, "to_bias": norm.bias.grad}
    for name, tensor in rounded.items():
        assert found[name].dtype == tensor.dtype
        torch.testing.assert_close(found[name], tensor.detach(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("kind", rank_cases.LOWERED)
def test_members_train_in_bfloat16_over_ranks(by_ranks, by_one, kind):
    name = f"{kind} lowered/losses"
    torch.testing.assert_close(by_ranks[0][name], by_one[name], rtol=5e-2, atol=1e-2)
    for name in (f"{kind} lowered/mean", f"{kind} lowered/variance"):  # of one rank's rows they would be far off
        torch.testing.assert_close(by_ranks[0][name], by_one[name], rtol=1e-3, atol=1e-5)


def test_any_network_trains_over_ranks_as_in_one_process(by_ranks, by_one):
    names = [name for name in by_one if name.startswith("any/")]
    assert any("num_batches_tracked" in name for name in names)
    for name in names:
        torch.testing.assert_close(by_ranks[0][name], by_one[name], **EXACT)


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
