"""Attacked recordings: crafted once, found again, and known by all that they depend on."""

import numpy as np
import pytest
import torch

from ecgquorum import Cohort, load_ensemble
from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.errors import AttackError
from ecgquorum.evaluation import evaluate
from ecgquorum.evaluation.attack_cache import Crafting, member_hashes
from ecgquorum.evaluation.conditions import plan_conditions
from ecgquorum.evaluation.shards import EvaluationContext, plan_shards, predict_shards
from ecgquorum.recipes import AttackRecipe, EvaluationRecipe

PGD = AttackRecipe(kind="pgd", options={"n_steps": 2})


@pytest.fixture
def runs(tiny_study):
    return {name: load_ensemble(tiny_study / "runs" / name) for name in ("baseline", "dec+part")}


@pytest.fixture
def cohort(tiny_study):
    return Cohort(tiny_study / "cohort")


@pytest.fixture
def crafted_batches(monkeypatch):
    """How many recordings are crafted, batch by batch."""
    counts = []
    craft = Crafting.crafted

    def counted(self, batch, stream):
        counts.append(len(batch.label))
        return craft(self, batch, stream)

    monkeypatch.setattr(Crafting, "crafted", counted)
    return counts


def test_strategies_share_attacks_on_the_member_they_share(runs, cohort, crafted_batches):
    n_test = len(cohort.part("test"))
    on_member = EvaluationRecipe(epsilons=(20.0,), attacks=(PGD,), masking_records=0)
    evaluate(runs, cohort, on_member)
    assert sum(crafted_batches) == n_test
    crafted_batches.clear()
    other = AttackRecipe(kind="pgd", target="member 1", options={"n_steps": 2})
    evaluate(runs, cohort, EvaluationRecipe(epsilons=(20.0,), attacks=(other,), masking_records=0))
    assert sum(crafted_batches) == 2 * n_test


def test_what_is_in_the_store_is_not_crafted_again(runs, cohort, crafted_batches, tmp_path):
    evaluation = EvaluationRecipe(epsilons=(20.0, 30.0), attacks=(PGD,), masking_records=0)
    first = evaluate(runs, cohort, evaluation, store=tmp_path)
    n_batches = len(crafted_batches)
    again = evaluate(runs, cohort, evaluation, store=tmp_path)
    assert len(crafted_batches) == n_batches
    assert again.rows == first.rows
    kept = sorted(tmp_path.rglob("*.safetensors"))
    kept[0].unlink()
    damaged = bytearray(kept[-1].read_bytes())
    damaged[-1] ^= 1
    kept[-1].write_bytes(damaged)  # lost and damaged ones come back, to the bit
    assert evaluate(runs, cohort, evaluation, store=tmp_path).rows == first.rows
    assert len(crafted_batches) == n_batches + 2
    assert evaluate(runs, cohort, evaluation).rows == first.rows


def test_a_key_is_about_everything_that_matters(runs, cohort):
    base, indices = runs["baseline"], cohort.part("test")
    keys = [
        Crafting(PGD, 20.0, base, 0).key(cohort, indices),
        Crafting(PGD, 21.0, base, 0).key(cohort, indices),
        Crafting(PGD, 20.0, base, 1).key(cohort, indices),
        Crafting(PGD, 20.0, base, 0).key(cohort, indices[1:]),
        Crafting(PGD, 20.0, base, 0).key(cohort, indices[::-1]),
        Crafting(AttackRecipe(kind="pgd", options={"n_steps": 3}), 20.0, base, 0).key(cohort, indices),
        Crafting(AttackRecipe(kind="sap"), 20.0, base, 0).key(cohort, indices),
        Crafting(AttackRecipe(kind="pgd", target="ensemble", options={"n_steps": 2}), 20.0, base, 0).key(
            cohort, indices
        ),
    ]
    assert len(set(keys)) == len(keys)
    renamed = AttackRecipe(kind="pgd", name="mine", options={"n_steps": 2})
    assert Crafting(renamed, 20.0, runs["dec+part"], 0).key(cohort, indices) == keys[0]
    with torch.no_grad():
        next(base.members[0].parameters()).view(-1)[0] += 1e-6
    assert Crafting(PGD, 20.0, base, 0).key(cohort, indices) != keys[0]


def test_a_member_is_known_by_its_bands_too(runs):
    hashes = [member_hashes(ensemble) for ensemble in runs.values()]
    assert hashes[0][0] == hashes[1][0]
    assert hashes[0][1] != hashes[1][1]
    relu, tanh = (torch.nn.Sequential(torch.nn.Linear(2, 2), kind()) for kind in (torch.nn.ReLU, torch.nn.Tanh))
    tanh.load_state_dict(relu.state_dict())
    one, other = member_hashes(Ensemble([relu, tanh], ("a", "b"), runs["baseline"].spec))
    assert one != other
    runs["dec+part"].members[1].bands.edges_hz += 1
    assert member_hashes(runs["dec+part"])[1] != hashes[1][1]


def test_shards_cover_every_recording_once(runs, cohort):
    indices, plan = np.arange(70) % len(cohort), plan_conditions(EvaluationRecipe(attacks=()))
    sitting = EvaluationContext(list(runs.values()), cohort, indices, plan, [np.arange(70)], 0, None, "cpu")
    found = list(predict_shards(sitting, plan_shards(sitting, 0, drawn=[3, 69]), None))
    places = np.concatenate([shard.places for shard, _ in found])
    np.testing.assert_array_equal(np.sort(places), np.arange(70))
    for e, ensemble in enumerate(runs.values()):
        said = np.concatenate([answered.probs[e] for _, answered in found])
        alone = ensemble.member_probs(cohort.batch(indices[places], ensemble.input))
        np.testing.assert_allclose(said, alone, atol=TOLERANCE)
    drawn = {place: batch for _, answered in found for place, batch in answered.drawn.items()}
    assert drawn.keys() == {3, 69}
    torch.testing.assert_close(drawn[69].signal, cohort.batch(indices[[69]], ensemble.input).signal)


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (AttackRecipe(kind="pgd", target="member 5"), "member below 2, found member 5"),
        (AttackRecipe(kind="pgd", options={"stepz": 1}), "unknown option stepz; known: norm, n_steps"),
        (AttackRecipe(kind="pgd", options={"n_steps": "many"}), "n_steps: expected a value such as 20, found 'many'"),
        (AttackRecipe(kind="pgd", options={"n_steps": 0}), "n_steps: expected a value such as 20, found 0"),
        (AttackRecipe(kind="pgd", options={"n_steps": True}), "found True"),
        (AttackRecipe(kind="pgd", options={"random_start": 1}), "random_start"),
        (AttackRecipe(kind="apgd", options={"objective": "mse"}), "objective: expected 'ce' or 'dlr', found 'mse'"),
        (AttackRecipe(kind="sap", options={"norm": "l2"}), "norm"),
        (AttackRecipe(kind="pgd", options={"step": float("inf")}), "step: expected a value such as 0.1, found inf"),
        (AttackRecipe(kind="sap", options={"sizes": (4, 6)}), "sizes: expected odd numbers of samples"),
        (AttackRecipe(kind="sap", options={"sizes": ()}), "sizes: expected odd"),
        (AttackRecipe(kind="sap", options={"widths": ("a",)}), "widths: expected numbers above 0"),
        (
            AttackRecipe(kind="sap", options={"sizes": (5, 7), "widths": (1.0,), "pairs": True}),
            "as many sizes as widths",
        ),
        (AttackRecipe(kind="worst", target="ensemble", options={"attacks": 1}), "unknown option attacks"),
    ],
)
def test_attacks_that_cannot_be_made_say_why(runs, cohort, recipe, reason):
    with pytest.raises(AttackError, match=reason):
        evaluate(runs, cohort, EvaluationRecipe(epsilons=(20.0,), attacks=(recipe,), masking_records=0))
