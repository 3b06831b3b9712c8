"""A Ray cluster of two nodes on this machine."""

import os
import secrets

import pytest

from ecgquorum.parallel import LocalExecutor

os.environ.setdefault("RAY_AUTH_MODE", "token")  # before Ray is loaded, which reads them once
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="module")
def ray_executor(two_machines):
    """Both machines, with one thread for each task; they keep their processes between tests."""
    from ecgquorum.parallel.ray_executor import RayExecutor

    with RayExecutor(two_machines.address, threads=1) as chosen:
        yield chosen


@pytest.fixture(scope="module", params=["processes", "ray_executor"], ids=["local", "ray"])
def executor(request):
    """Either kind, with room for two tasks of one thread."""
    return request.getfixturevalue(request.param)
