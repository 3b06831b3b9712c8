"""A study and a worklist are the same with every executor, and after the loss of a machine."""

import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ecgquorum import Scorecard, load_ensemble, run_study
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.evaluation import evaluate_recipe
from ecgquorum.evaluation.conditions import NATURAL
from ecgquorum.parallel import LocalExecutor
from ecgquorum.parallel.executor import Lost
from ecgquorum.recipes import EvaluationRecipe, parse_study
from ecgquorum.recordings import SandboxLimits, write
from ecgquorum.triage import TriageOptions, distributed, triage_files, write_worklist
from ecgquorum.triage.policies import Threshold
from ecgquorum.tuning import TuningOptions, tune
from tests.parallel.doomed_policy import Doomed
from tests.triage.worklists import assert_same_worklist, read_worklist

pytest.importorskip("ray", reason="Ray is not installed")
from ecgquorum.parallel.ray_executor import RayExecutor

POLICY = Threshold(0.5)
SMALL_STUDY = """
compare = ["baseline", "dec+adv"]
name = "small"
members = 2
[input]
window_s = 5.0
[member]
width = 0.125
[training]
epochs = 1
batch_size = 16
[cohort]
source = "synthetic:physionet2017"
records = 60
seconds = 4.0
[strategies.dec]
projected = 8
[strategies.adv]
steps = 1
step = 1.0
epochs = 1
[evaluation]
masking_records = 0
epsilons = [50.0]
[[evaluation.attacks]]
kind = "pgd"
options = { n_steps = 2 }
[[evaluation.attacks]]
kind = "square"
target = "ensemble"
options = { n_queries = 4 }
"""

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]


def assert_same_scorecard(found, expected):
    """The same rows; values to the tolerance, except for attacks, which amplify rounding."""

    def asked(card):
        return [replace(row, value=None, low=None, high=None) for row in card.rows]

    assert asked(found) == asked(expected)
    assert found.predictions.keys() == expected.predictions.keys()
    for (ensemble, condition), one in expected.predictions.items():
        tolerance = TOLERANCE if expected.conditions[condition].attack == NATURAL else 1e-3
        other = found.predictions[ensemble, condition].raw_member_probs
        np.testing.assert_allclose(other, one.raw_member_probs, rtol=0, atol=tolerance)


def test_a_study_is_the_same(processes, ray_executor, tmp_path, monkeypatch):
    module = sys.modules[run_study.__module__]
    monkeypatch.setattr(module, "write_report", lambda cards, out: out)  # drawing takes longest
    study = parse_study(SMALL_STUDY)
    outs = {name: tmp_path / name for name in ("here", "processes", "ray")}
    run_study(study, outs["here"])
    run_study(study, outs["processes"], executor=processes)
    run_study(study, outs["ray"], executor=ray_executor)
    here = outs.pop("here")
    kept = {path.name for path in (here / "members").iterdir()}
    assert len(kept) == 5  # shared jobs are trained once: 2 + 1 members, and 2 continued by adversarial training
    for other in outs.values():
        assert {path.name for path in (other / "members").iterdir()} == kept
        for strategy in study.compare:
            ours, theirs = (load_ensemble(out / "runs" / strategy) for out in (here, other))
            assert ours.card["weights_sha256"] == theirs.card["weights_sha256"]
            assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
        cards = [Scorecard.load(out / "scorecard.json") for out in (here, other)]
        assert_same_scorecard(cards[1], cards[0])
        assert [e.attacked.keys() for e in cards[0].examples] == [e.attacked.keys() for e in cards[1].examples]


@pytest.fixture
def folder(tmp_path, tiny_cohort):
    """60 good recordings and one that cannot be read."""
    place = tmp_path / "in"
    place.mkdir()
    for i in range(60):
        write(tiny_cohort.recording(i), place / f"r{i:03d}.npz")
    (place / "broken.npz").write_bytes(b"this is no recording")
    return place


def worklist(model, folder, out, executor=None, count=lambda done, total: None, policy=POLICY):
    progress = SimpleNamespace(update=lambda _, done, total: count(done, total), log=lambda line: None)
    options = TriageOptions(limits=SandboxLimits(1, seconds=120.0))
    journal = triage_files(model, policy, [folder], out, options, executor=executor, progress=progress)
    with journal:
        write_worklist(journal, out, "tiny", "")
    return read_worklist(out)


class Watched(RayExecutor):
    """Counts what was lost."""

    n_lost = 0

    def _outcome(self, handle):
        outcome = super()._outcome(handle)
        self.n_lost += isinstance(outcome, Lost)
        return outcome


def test_a_killed_machine_changes_nothing_in_the_worklist(two_machines, tiny_ensemble, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "SHARD", 8)
    expected = worklist(tiny_ensemble, folder, tmp_path / "here")
    assert len(expected) == 61
    begun = tmp_path / "begun"
    doomed = two_machines.add_node(num_cpus=1)
    counts = []

    def killer():
        while not begun.exists():
            time.sleep(0.02)
        two_machines.remove_node(doomed, allow_graceful=False)

    with Watched(two_machines.address, threads=1) as executor:
        threading.Thread(target=killer, daemon=True).start()
        policy = Doomed(0.5, str(begun), doomed.node_id)
        found = worklist(tiny_ensemble, folder, tmp_path / "ray", executor, lambda n, _: counts.append(n), policy)
        assert executor.n_lost >= 1
    assert counts == sorted(counts)
    assert counts[-1] == 61, "a recording was counted twice"
    assert_same_worklist(found, expected, tiny_ensemble, POLICY.threshold)


def test_processes_give_the_same_worklist_and_resume(processes, tiny_ensemble, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "SHARD", 16)
    expected = worklist(tiny_ensemble, folder, tmp_path / "here")

    class StoppedError(Exception):
        pass

    def stop(done, total):
        raise StoppedError

    with pytest.raises(StoppedError):
        worklist(tiny_ensemble, folder, tmp_path / "there", processes, stop)
    counts = []
    found = worklist(tiny_ensemble, folder, tmp_path / "there", processes, lambda done, _: counts.append(done))
    assert_same_worklist(found, expected, tiny_ensemble, POLICY.threshold)
    assert counts[0] >= 32, "what was answered before was answered again"


def test_a_machine_that_does_not_see_the_files_is_named(tiny_ensemble, folder, tmp_path, monkeypatch):
    class Blind(LocalExecutor):
        """Its processes see nothing, as on a machine where the folder is not mounted."""

        def run(self, function, tasks, common=(), on_lost=None):
            for task in tasks:
                yield task, ([], list(task.item), "far")

    with Blind(1, 1) as executor, pytest.raises(Exception, match="^far: expected to see .*same files at the same"):
        worklist(tiny_ensemble, folder, tmp_path / "out", executor)
    journal = triage_files(tiny_ensemble, Threshold(0.5), [], tmp_path / "out")
    with journal:
        assert len(journal) == 0


def test_a_search_on_a_cluster_has_the_same_scores(ray_executor, tiny_cohort, tmp_path):
    study = parse_study(SMALL_STUDY)
    options = TuningOptions(n_trials=2, strategy="dec", vary=("dec",), records=6)
    here = tune(study, tiny_cohort, tmp_path / "here", options=options)
    there = tune(study, tiny_cohort, tmp_path / "ray", options=options, executor=ray_executor)
    assert [trial.values for trial in there.trials] == [trial.values for trial in here.trials]
    for one, other in zip(there.trials, here.trials, strict=True):
        assert other.measures and one.measures.keys() == other.measures.keys()
        scores = [[estimate.value for estimate in trial.measures.values()] for trial in (one, other)]
        np.testing.assert_allclose(*scores, atol=0.01)


@pytest.mark.slow
def test_evaluate_takes_a_cluster(two_machines, ray_executor, tiny_run, tiny_cohort, tmp_path, ecgquorum):
    ray = ("--executor", "ray", "--address", two_machines.address, "--threads", "1")
    out = tmp_path / "ray" / "card.json"
    options = ("--attack", "pgd", "--epsilons", "50", "--part", "tune", *ray)
    ecgquorum("evaluate", tiny_run, "--cohort", tiny_cohort.path, "--out", out, *options)
    protocol = EvaluationRecipe().change(attacks=("pgd",), epsilons=(50.0,), part="tune")
    assert_same_scorecard(Scorecard.load(out), evaluate_recipe(load_ensemble(tiny_run), tiny_cohort, protocol))
