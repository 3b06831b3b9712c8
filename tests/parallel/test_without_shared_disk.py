"""Two Ray nodes that share nothing but a bucket do the work of one machine, also after one of them is killed."""

import threading
import time
from types import SimpleNamespace

import pytest

from ecgquorum import Cohort, load_ensemble, run_study
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.recipes import parse_study
from ecgquorum.recordings import SandboxLimits, write
from ecgquorum.triage import TriageOptions, distributed, triage_files
from tests.parallel.doomed_policy import Doomed
from tests.parallel.test_on_two_machines import POLICY, SMALL_STUDY

pytest.importorskip("ray", reason="Ray is not installed")
from ecgquorum.parallel.executor import Lost
from ecgquorum.parallel.ray_executor import RayExecutor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.usefixtures("one_thread")]
IN, OUT = "s3://bucket/2026", "s3://bucket/sorted"


@pytest.fixture
def nodes(s3, tmp_path):
    """A cluster of two nodes, each with a cache folder of its own; `add` starts another."""
    utils = pytest.importorskip("ray.cluster_utils")
    options = {"num_cpus": 1, "include_dashboard": False, "env_vars": s3.environment(tmp_path / "node 1")}
    cluster = utils.Cluster(initialize_head=True, head_node_args=options)
    second = cluster.add_node(num_cpus=1, env_vars=s3.environment(tmp_path / "node 2"))
    yield SimpleNamespace(cluster=cluster, second=second)
    cluster.shutdown()


class Watched(RayExecutor):
    """Counts what was lost."""

    n_lost = 0

    def _outcome(self, handle):
        outcome = super()._outcome(handle)
        self.n_lost += isinstance(outcome, Lost)
        return outcome


def results(model, place, out, policy=POLICY, executor=None):
    options = TriageOptions(limits=SandboxLimits(1, seconds=120.0))
    with triage_files(model, policy, [place], out, options, executor=executor) as journal:
        return {entry.result.source.removeprefix(f"{place}/"): entry.result for entry in journal.entries()}


def test_triage_with_a_killed_node(nodes, s3, tiny_ensemble, tiny_cohort, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "SHARD", 8)
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(80):
        write(tiny_cohort.recording(i % len(tiny_cohort)), folder / f"r{i:03d}.npz")
    expected = results(tiny_ensemble, folder, tmp_path / "here")
    s3.put_folder("bucket", "2026", folder)
    begun = tmp_path / "begun"

    def killer():
        while not begun.exists():
            time.sleep(0.02)
        nodes.cluster.remove_node(nodes.second, allow_graceful=False)

    threading.Thread(target=killer, daemon=True).start()
    with Watched(nodes.cluster.address, threads=1) as executor:
        policy = Doomed(POLICY.threshold, str(begun), nodes.second.node_id)
        found = results(tiny_ensemble, IN, OUT, policy, executor)
        assert executor.n_lost >= 1
    assert found.keys() == expected.keys() and len(found) == 80
    for name, one in expected.items():
        assert found[name].label == one.label and found[name].sha256 == one.sha256
        assert found[name].risk == pytest.approx(one.risk, abs=TOLERANCE * 10)
    used = [path for path in (tmp_path / "node 1", tmp_path / "node 2") if path.is_dir()]
    assert len(used) == 2, "a node did not fetch what it needed into its own folder"
    assert not (tmp_path / "cache" / "fetched").exists(), "the command fetched for its tasks"


def test_a_study_with_checkpoints_and_attacks_in_a_bucket(nodes, s3, tiny_cohort, tmp_path, no_figures):
    study = parse_study(SMALL_STUDY)
    run_study(study, tmp_path / "here", cohort=tiny_cohort)
    s3.put_folder("bucket", "cohort", tiny_cohort.path)
    with RayExecutor(nodes.cluster.address, threads=1) as executor:
        cohort, out = Cohort("s3://bucket/cohort"), tmp_path / "there"
        run_study(study, out, cohort=cohort, store="s3://bucket/study", executor=executor)
    for strategy in study.compare:
        ours, theirs = (load_ensemble(place / "runs" / strategy) for place in (tmp_path / "here", out))
        assert ours.card["weights_sha256"] == theirs.card["weights_sha256"]
    assert not (out / "members").exists() and not (out / "attacks").exists()
    assert len(s3.keys("bucket", "study/members/")) >= 5 and s3.keys("bucket", "study/attacks/")
    for node in ("node 1", "node 2"):
        assert list((tmp_path / node / "objects").glob("*/signal.f32")), f"{node} did not fetch the cohort"
