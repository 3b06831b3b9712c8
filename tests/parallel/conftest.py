"""A Ray cluster of two nodes on this machine; a cohort and a run to compare with those of ranks."""

import dataclasses
import os
import secrets

import pytest
from typer.testing import CliRunner

from ecgquorum import build_cohort, open_source
from ecgquorum.cli import app
from ecgquorum.parallel import LocalExecutor

from .rank_runs import RUN_RECIPE, arguments

os.environ.setdefault("RAY_AUTH_MODE", "token")  # before Ray is loaded, which reads them once
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


@pytest.fixture(scope="package")  # its processes work also while they wait
def two_machines():
    """A cluster of two nodes with a core each; the first is the head."""
    utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def processes():
    """Two processes of one thread."""
    with LocalExecutor(workers=2, threads=1) as chosen:
        yield chosen


@pytest.fixture(scope="package")
def connect(two_machines):
    """Connect this process to both machines, unless it is; returns the executor, with one thread for each task."""
    import ray

    from ecgquorum.parallel.ray_executor import RayExecutor

    executors = []

    def connect():
        if not ray.is_initialized():
            executors.append(RayExecutor(two_machines.address, threads=1))
        return executors[-1]

    yield connect
    for executor in executors:
        executor.close()


@pytest.fixture
def ray_executor(connect):
    """Both machines. The connection and the processes there are kept between tests; commands in this process use it."""
    return connect()


@pytest.fixture(params=["processes", "ray_executor"], ids=["local", "ray"])
def executor(request):
    """Either kind, with room for two tasks of one thread."""
    return request.getfixturevalue(request.param)


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


@pytest.fixture(scope="module")
def alone(cohort, tmp_path_factory):
    """The folder of a run by one process, by the command line; the recipe is beside it."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "recipe.toml").write_text(RUN_RECIPE)
    done = CliRunner().invoke(app, arguments(folder, cohort, "alone"))
    assert done.exit_code == 0, done.output
    return folder / "alone"
