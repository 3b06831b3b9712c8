"""Clusters without token authentication are refused."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ecgquorum.cli import app
from ecgquorum.errors import ClusterError
from ecgquorum.parallel import ray_connection

from ..commands import Command

pytest.importorskip("ray", reason="Ray is not installed")

OPEN_CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


def arguments(tiny_run, tmp_path, *options):
    return ["triage", tmp_path, "--model", tiny_run, "--budget", "10%", "--out", tmp_path / "out", *options]


@pytest.fixture(autouse=True)
def disconnected():
    """This process is connected to no cluster when a test begins."""
    import ray

    ray.shutdown()


def triage(tiny_run, tmp_path, *options, **environment):
    """Run the command in a process of its own: Ray reads its environment once."""
    unset = dict.fromkeys(name for name in os.environ if name.startswith("RAY_AUTH"))
    home = {"HOME": str(tmp_path)}  # where no token is
    done = Command(*arguments(tiny_run, tmp_path, *options), environment=unset | home | environment)
    assert done.wait() == 1, done.stderr
    return done


def refusal(ran):
    """The one line of an error, however the terminal broke it."""
    assert ran.stderr.startswith("error: "), ran.stderr
    assert "Traceback" not in ran.stderr
    return " ".join(ran.stderr.split())


@pytest.fixture(scope="module")
def open_cluster():
    """The address of a cluster that requires no token and listens on the network."""
    known = os.environ | {"RAY_AUTH_MODE": "disabled"}
    process = subprocess.Popen(
        [sys.executable, "-c", OPEN_CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=known
    )
    yield process.stdout.readline().strip()
    process.communicate("", timeout=240)


@pytest.mark.long
def test_an_open_cluster_is_refused(open_cluster, tiny_run, tmp_path):
    if ray_connection._is_loopback(ray_connection._host(open_cluster)):
        pytest.skip("this machine is on no network")
    for env in ({"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f" * 64}):
        ran = triage(tiny_run, tmp_path, "--executor", "ray", "--address", open_cluster, **env)
        said = refusal(ran)
        assert f"error: {open_cluster}: this Ray cluster accepts requests without a token" in said
        assert "start it with RAY_AUTH_MODE=token on every machine" in said


def test_a_cluster_with_a_token_refuses_others(two_machines):
    assert not ray_connection.accepts_without_token(two_machines.address)


@pytest.mark.long
def test_a_cluster_without_a_token_accepts_requests(open_cluster):
    assert ray_connection.accepts_without_token(open_cluster)


@pytest.mark.long
def test_an_open_cluster_is_refused_by_its_loopback_address_too(open_cluster):
    """Also on a machine without a route to other networks, and with any host name."""
    if not ray_connection._own_addresses():
        pytest.skip("this machine is on no network")
    with pytest.raises(ClusterError, match="accepts requests without a token"):
        ray_connection.check_authentication(f"127.0.0.1:{open_cluster.rpartition(':')[2]}")


def test_a_missing_token_is_a_one_line_error(two_machines, tiny_run, tmp_path, ecgquorum, monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE")
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))  # where no token is
    options = arguments(tiny_run, tmp_path, "--executor", "ray", "--address", two_machines.address)
    said = refusal(ecgquorum(*options, code=1))
    assert f"error: {two_machines.address}: the cluster requires a token and this machine has none" in said


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--address", "auto"), "--address needs --executor ray"),
        (("--executor", "ray", "--address", "auto", "--workers", "2"), "--workers and --address exclude each other"),
        (("--executor", "ray", "--address", "ray://host:10001"), "--address: expected auto or HOST:PORT, found ray://"),
        (("--executor", "ray", "--address", "nowhere"), "--address: expected auto or HOST:PORT, found nowhere"),
        (("--executor", "ray", "--address", "127.0.0.1:9"), "127.0.0.1:9: no Ray cluster listens there"),
    ],
)
def test_wrong_options_are_errors(options, reason, tiny_run, tmp_path):
    options = ("--model", str(tiny_run), "--budget", "10%", "--out", str(tmp_path / "out"), *options)
    ran = CliRunner().invoke(app, ["triage", str(tmp_path), *options])
    assert isinstance(ran.exception, ClusterError)
    assert str(ran.exception).startswith(reason)
    assert not (tmp_path / "out").exists()


def test_only_train_runs_under_torchrun(tiny_run, tmp_path, ecgquorum, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    said = ecgquorum(*arguments(tiny_run, tmp_path), code=1)
    assert "torchrun works with the command train only" in refusal(said)


ALONE = """
import sys
import ray  # as a program may that uses Ray for something else too
from ecgquorum.parallel import Task
from ecgquorum.parallel.ray_executor import RayExecutor
for number in range(int(sys.argv[1])):
    with RayExecutor(None, 1) as executor:
        print(*(said for _, said in executor.run(len, [Task("a", "x" * (3 + number))])))
"""


@pytest.mark.long
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_cluster_of_this_machine_alone_is_started_and_closed(times, tmp_path):
    known = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    command = [sys.executable, "-c", ALONE, str(times)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=known | {"HOME": str(tmp_path)})
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["3", "4"][:times]
