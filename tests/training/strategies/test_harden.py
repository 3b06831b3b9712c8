"""Hardening: a share of each batch is attacked, each recording within a bound of its own."""

import pytest

from ecgquorum.errors import TrainingError
from ecgquorum.strategies import Harden, RunFacts
from ecgquorum.training.phase import BasePhase

from ..conftest import run_backward


def facts(scaling):
    return RunFacts(3, 1, 4, 16, 9, 300.0, scaling, 24)


def test_a_share_of_each_batch_is_attacked_within_its_bound(context_of, tiny_ensemble, monkeypatch):
    member = tiny_ensemble.members[0]
    context = context_of([member], Harden(share=0.5, epsilon=80.0))
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
