"""Attacked recordings: crafted once, found again, and identified by everything that they depend on."""

import dataclasses

import numpy as np
import pytest
import torch

from ecgquorum import Cohort, load_ensemble
from ecgquorum.attacks import APGD, PGD, SAP, Attack, WorstCase
from ecgquorum.ensemble import Ensemble
from ecgquorum.evaluation import AttackCondition, EvaluationOptions, evaluate
from ecgquorum.evaluation.attack_cache import AttackJob
from ecgquorum.evaluation.data import CohortData
from ecgquorum.evaluation.fingerprint import hash_attack, hash_module
from ecgquorum.evaluation.shards import EvaluationContext, plan_shards, predict_shards

QUICK = PGD(20.0, n_steps=2)
NO_CHECKS = EvaluationOptions(masking_records=0)


@pytest.fixture
def runs(tiny_study):
    return {name: load_ensemble(tiny_study / "runs" / name) for name in ("baseline", "dec+part")}


@pytest.fixture
def cohort(tiny_study):
    return Cohort(tiny_study / "cohort")


@pytest.fixture
def crafted(monkeypatch):
    """How many recordings are crafted, batch by batch."""
    counts = []
    craft = AttackJob.craft

    def count(self, batch, stream):
        counts.append(len(batch.label))
        return craft(self, batch, stream)

    monkeypatch.setattr(AttackJob, "craft", count)
    return counts


def test_ensembles_share_attacks_on_the_member_they_share(runs, cohort, crafted):
    n_test = len(cohort.part("test"))
    evaluate(runs, cohort, [QUICK], options=NO_CHECKS)
    assert sum(crafted) == n_test
    crafted.clear()
    evaluate(runs, cohort, [AttackCondition(QUICK, "member 1")], options=NO_CHECKS)
    assert sum(crafted) == 2 * n_test


@pytest.mark.long
def test_what_is_in_the_cache_is_not_crafted_again(runs, cohort, crafted, tmp_path):
    attacks = [QUICK, PGD(30.0, n_steps=2)]
    first = evaluate(runs, cohort, attacks, options=NO_CHECKS, cache=tmp_path)
    n_batches = len(crafted)
    again = evaluate(runs, cohort, attacks, options=NO_CHECKS, cache=tmp_path)
    assert len(crafted) == n_batches
    assert again.rows == first.rows
    kept = sorted(tmp_path.rglob("*.safetensors"))
    kept[0].unlink()
    damaged = bytearray(kept[-1].read_bytes())
    damaged[-1] ^= 1
    kept[-1].write_bytes(damaged)  # lost and damaged files are made again
    assert evaluate(runs, cohort, attacks, options=NO_CHECKS, cache=tmp_path).rows == first.rows
    assert len(crafted) == n_batches + 2
    assert evaluate(runs, cohort, attacks, options=NO_CHECKS).rows == first.rows


def test_a_key_depends_on_everything_that_matters(runs, cohort):
    base, data = runs["baseline"], CohortData(cohort, "test")
    every = np.arange(len(data))

    def key(attack=QUICK, target="", seed=0, positions=every, ensemble=base):
        return AttackJob(AttackCondition(attack, target), ensemble, seed).key(data, positions)

    keys = [
        key(),
        key(PGD(21.0, n_steps=2)),
        key(PGD(20.0, n_steps=3)),
        key(SAP(20.0)),
        key(target="ensemble"),
        key(seed=1),
        key(positions=every[1:]),
        key(positions=every[::-1]),
    ]
    assert len(set(keys)) == len(keys)
    named = AttackCondition(QUICK, name="mine")
    assert AttackJob(named, runs["dec+part"], 0).key(data, every) == keys[0]
    with torch.no_grad():
        next(base.members[0].parameters()).view(-1)[0] += 1e-6
    assert key() != keys[0]


def test_a_network_is_identified_by_its_bands_and_classes_too(runs):
    hashes = [[hash_module(member) for member in ensemble.members] for ensemble in runs.values()]
    assert hashes[0][0] == hashes[1][0]
    assert hashes[0][1] != hashes[1][1]
    relu, tanh = (torch.nn.Sequential(torch.nn.Linear(2, 2), kind()) for kind in (torch.nn.ReLU, torch.nn.Tanh))
    tanh.load_state_dict(relu.state_dict())
    assert hash_module(relu) != hash_module(tanh)
    scaled = [Scaled(scale) for scale in (1.0, 2.0, 1.0)]
    one, other, again = map(hash_module, scaled)
    assert one == again != other, "options that are not weights count"


class Scaled(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return self.scale * x.mean(dim=2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Offset(Attack):
    """A custom attack: adds epsilon, or a function of it."""

    scale: object = None
    table: tuple = ()

    def perturb(self, model, x, y, valid, generator):
        return x + self.epsilon


def test_an_attack_is_identified_by_its_class_and_parameters():
    class Other(Offset):
        def perturb(self, model, x, y, valid, generator):
            return x - self.epsilon

    attacks = [
        Offset(1.0),
        Other(1.0),
        Offset(2.0),
        Offset(1.0, table=(1, 2)),
        Offset(1.0, table=(1, (2,))),
        Offset(1.0, scale=np.ones(3)),
        Offset(1.0, scale=torch.ones(3)),
        Offset(1.0, scale=torch.zeros(3)),
        Offset(1.0, scale={"a": 1}),
        Offset(1.0, scale=len),
        Offset(1.0, scale=lambda x: x),
        Offset(1.0, scale=torch.nn.Identity()),
        WorstCase(1.0, attacks=(PGD(1.0),)),
        WorstCase(1.0, attacks=(APGD(1.0),)),
    ]
    hashes = [hash_attack(attack) for attack in attacks]
    assert len(set(hashes)) == len(hashes)
    assert hash_attack(Offset(1.0, scale=np.ones(3))) == hashes[5]
    assert hash_attack(PGD(1.0)) == hash_attack(PGD(1.0))


def test_shards_cover_every_recording_once(runs, cohort):
    data = CohortData(cohort, "test")
    n, last = len(data), len(data) - 1
    context = EvaluationContext(list(runs.values()), data, [None], [np.arange(n)], 0, None, "cpu")
    found = list(predict_shards(context, plan_shards(context, 0, shown=[3, last]), None))
    rows = np.concatenate([shard.rows for shard, _ in found])
    np.testing.assert_array_equal(np.sort(rows), np.arange(n))
    for e, ensemble in enumerate(runs.values()):
        probs = np.concatenate([result.probs[e] for _, result in found])
        np.testing.assert_allclose(probs, ensemble.member_probs(data.batch(rows, ensemble.input)), atol=1e-5)
    shown = {row: batch for _, result in found for row, batch in result.shown.items()}
    assert shown.keys() == {3, last}
    torch.testing.assert_close(shown[last].signal, data.batch(np.array([last]), ensemble.input).signal)


def test_members_without_weights_are_evaluated(runs):
    """A network without parameters has no device of its own."""

    class Fixed(torch.nn.Module):
        def forward(self, x):
            return torch.stack([x.mean(dim=(1, 2)), x.std(dim=(1, 2))], dim=1)

    ensemble = Ensemble([Fixed(), Fixed()], ("a", "b"), runs["baseline"].input)
    x = np.random.default_rng(0).normal(size=(6, 1, 50))
    card = evaluate(ensemble, (x, np.arange(6) % 2), [Offset(1.0)], options=NO_CHECKS)
    assert card.conditions[1].attack == "Offset"


def test_sap_starts_from_the_cached_pgd_and_finds_what_it_finds_alone(runs, cohort, crafted, tmp_path):
    ensemble = runs["baseline"]
    attacks = [PGD(20.0), SAP(20.0, n_steps=2)]
    with_cache = evaluate(runs, cohort, attacks, options=NO_CHECKS, cache=tmp_path)
    n_test = len(cohort.part("test"))
    assert sum(crafted) == 2 * n_test, "PGD is not crafted again for SAP"
    data = CohortData(cohort, "test")
    batch = data.batch(np.arange(n_test), ensemble.input)
    alone = SAP(20.0, n_steps=2)(ensemble.members[0], batch.signal, batch.label, batch.valid)
    job = AttackJob(AttackCondition(SAP(20.0, n_steps=2)), ensemble, 0)
    first = job.first_job()
    started = job.start_from(first.craft(batch, "a") - batch.signal)
    assert started.first_job() is None
    agree = (started.craft(batch, "b") - alone).abs() < 1e-2
    assert agree.float().mean() > 0.95, "but for signs of gradients next to 0"
    assert {row.attack for row in with_cache.rows} >= {"pgd", "sap"}
