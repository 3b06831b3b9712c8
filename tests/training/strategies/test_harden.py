"""Hardening: a share of each batch is attacked, each recording within a bound of its own."""

import math

import pytest
import torch
from torch import nn

from ecgquorum.cohorts import Batch
from ecgquorum.errors import TrainingError
from ecgquorum.strategies import Harden, RunFacts
from ecgquorum.training.phase import BasePhase

from ..conftest import run_backward


def facts(scaling):
    return RunFacts(3, 1, 4, 16, 9, 300.0, scaling, 24)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_share_of_each_batch_is_attacked_within_its_bound(context_of, tiny_ensemble, monkeypatch, steps):
    member = tiny_ensemble.members[0]
    context = context_of([member], Harden(share=0.5, epsilon=80.0, steps=steps))
    batch, indices = next(context.batches(0))
    seen = []
    monkeypatch.setattr(member, "embed", lambda x, embed=member.embed: seen.append(x) or embed(x))
    (norm, *_) = [module for module in member.modules() if hasattr(module, "num_batches_tracked")]
    before = norm.num_batches_tracked.clone()
    run_backward(BasePhase(context.options, context.strategy), context, batch, indices)
    assert norm.num_batches_tracked == before + 1
    change = (seen[-1] - batch.signal).abs().amax(dim=(1, 2))
    n_attacked = len(batch.label) // 2
    assert (change[:n_attacked] > 0).all() and (change[n_attacked:] == 0).all()
    assert change.max() <= 80 * (1 + 1e-5) and change[:n_attacked].std() > 1, "each by a bound of its own"
    assert not seen[-1][~batch.valid.expand_as(batch.signal)].any()


def test_checkpoints_are_chosen_on_unchanged_recordings(context_of, tiny_ensemble):
    members = list(tiny_ensemble.members)[:1]
    hardened, plain = (context_of(members, strategy) for strategy in (Harden(epsilon=500.0), None))
    found = [BasePhase(context.options, context.strategy).validate(context) for context in (hardened, plain)]
    assert found[0] == found[1]


def test_epsilon_depends_on_the_scaling_unless_it_is_given():
    assert Harden().prepare(facts("microvolt")).epsilon == 50.0
    assert Harden().prepare(facts("unit")).epsilon == 0.05
    assert Harden(epsilon=3.0).prepare(facts("none")).epsilon == 3.0
    with pytest.raises(TrainingError, match="epsilon has no default"):
        Harden().prepare(facts("none"))


def test_some_members_can_be_hardened_and_the_others_are_trained_as_without_it(context_of, tiny_ensemble):
    strategy = Harden(epsilon=80.0, members=[1])
    context = context_of(list(tiny_ensemble.members)[:2], strategy)
    batch, indices = next(context.batches(0))
    changed = [strategy.change_batch(context.step(number, batch, indices)).signal for number in (0, 1)]
    assert (changed[0] == batch.signal).all() and (changed[1] != batch.signal).any()
    assert strategy.describe(0) is None
    assert strategy.describe(1) == Harden(epsilon=80.0).describe(1), "so that ensembles share hardened members"


@pytest.mark.parametrize("members", [[3], [-1], ["1"], 1, [True]])
def test_members_that_do_not_exist_are_explained(members):
    with pytest.raises(TrainingError, match="strategy harden: members"):
        Harden(epsilon=80.0, members=members).prepare(facts("microvolt"))


def test_more_steps_find_a_higher_loss(context_of, tiny_ensemble):
    member = tiny_ensemble.members[0]
    losses = []
    for steps in (1, 8):
        strategy = Harden(share=1.0, epsilon=200.0, steps=steps)
        context = context_of([member], strategy)
        batch, indices = next(context.batches(0))
        changed = strategy.change_batch(context.step(0, batch, indices))
        member.eval()
        with torch.no_grad():
            losses.append(nn.functional.cross_entropy(member(changed.signal), changed.label).item())
    assert losses[1] > losses[0]


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, "2"])
def test_numbers_of_steps_that_cannot_be_are_explained(steps):
    with pytest.raises(TrainingError, match="strategy harden: steps: expected a whole number of at least 1"):
        Harden(steps=steps)


class Periodic(nn.Module):
    """Right for the class 0 without a change and at a change of `period`, wrong in between."""

    def __init__(self, period: float) -> None:
        super().__init__()
        self.period = nn.Parameter(torch.tensor(period))

    def forward(self, x):
        margin = torch.cos(2 * math.pi * x.mean(dim=(1, 2)) / self.period)
        return torch.stack([margin, -margin], dim=1)


def test_a_member_that_withstands_one_step_only_is_found():
    batch = Batch(
        torch.full((20, 1, 8), 0.1), torch.ones(20, 1, 8, dtype=torch.bool), torch.zeros(20, dtype=torch.long)
    )
    members = [Periodic(40.0), Periodic(1e4)]
    found = Harden(epsilon=80.0).check_members(members, batch)
    assert found["epsilon"] == 40.0 and found["n_recordings"] == 20
    assert found["accuracy"]["0"] == {"natural": 1.0, "one_step": 1.0, "twenty_steps": 0.0}
    assert found["accuracy"]["1"] == {"natural": 1.0, "one_step": 1.0, "twenty_steps": 1.0}
    assert found["warning"].startswith("member 0 withstands one step")
    alone = Harden(epsilon=80.0, members=[1]).check_members(members, batch)
    assert alone["accuracy"].keys() == {"1"} and "warning" not in alone
