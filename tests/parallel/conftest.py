"""A Ray cluster of two nodes on this machine."""

import os
import secrets

import pytest

from ecgquorum.parallel import LocalExecutor

os.environ.setdefault("RAY_AUTH_MODE", "token")  # before Ray is loaded, which reads them once
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


@pytest.fixture(scope="module")
def two_machines():
    """A cluster of two nodes with a core each; the first is the head."""
    utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module", params=["local", "ray"])
def executor(request):
    """Either kind, with room for two tasks of one thread."""
    if request.param == "local":
        with LocalExecutor(workers=2, threads=1) as chosen:
            yield chosen
        return
    two = request.getfixturevalue("two_machines")
    from ecgquorum.parallel.ray_executor import RayExecutor

    with RayExecutor(two.address, threads=1) as chosen:
        yield chosen
