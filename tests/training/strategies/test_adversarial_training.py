"""Adversarial training: attacked batches in training and validation; crafting leaves the member as it was."""

import pytest
import torch
from torch.nn import functional as F

from ecgquorum.attacks import PGD
from ecgquorum.strategies import AdversarialTraining
from ecgquorum.training.phase import BasePhase
from ecgquorum.training.strategies.adversarial_training import AdversarialPhase

from ..conftest import run_backward

STRATEGY = AdversarialTraining(epsilon=10.0, steps=2)


def test_statistics_move_only_by_the_forward_pass_of_training(context_of, tiny_ensemble):
    """One loss moves each batch norm's count by one, however many steps the attack took."""
    member = tiny_ensemble.members[0]
    context = context_of([member])
    batch, indices = next(context.batches(0))
    (norm, *_) = [module for module in member.modules() if hasattr(module, "num_batches_tracked")]
    before = norm.num_batches_tracked.clone()
    run_backward(AdversarialPhase(STRATEGY), context, batch, indices)
    assert norm.num_batches_tracked == before + 1
    assert all(parameter.grad is not None for parameter in member.parameters())


def test_training_sees_attacked_recordings(context_of, tiny_ensemble):
    context = context_of([tiny_ensemble.members[0]])
    context.network.eval()
    batch, indices = next(context.batches(0))
    phases = (BasePhase(context.options, context.strategy), AdversarialPhase(STRATEGY))
    losses = [sum(term.item() for term in phase.losses(context, batch, indices)) for phase in phases]
    assert losses[1] > losses[0]


def test_members_are_validated_under_the_training_attack(context_of, tiny_ensemble):
    member = tiny_ensemble.members[0]
    context = context_of([member])
    found = AdversarialPhase(STRATEGY).validate(context)
    losses = []
    for batch in context.tune_batches():
        attacked = PGD(10.0, n_steps=2)(member, batch.signal, batch.label, batch.valid)
        losses.append(F.cross_entropy(member.eval()(attacked), batch.label, reduction="sum").item())
    assert found.loss == pytest.approx(sum(losses) / len(context.cohort.part("tune")), rel=1e-4)
    assert found.loss > BasePhase(context.options, context.strategy).validate(context).loss


@pytest.mark.parametrize(("share", "expected"), [(0.25, 10.0), (0.5, 20.0)])
def test_a_step_is_a_share_of_epsilon(context_of, tiny_ensemble, share, expected):
    context = context_of([tiny_ensemble.members[0].eval()])
    batch, indices = next(context.batches(0))
    phase = AdversarialPhase(AdversarialTraining(epsilon=40.0, steps=1, step=share))
    changed = phase.change_batch(context.step(0, batch, indices))
    assert (changed.signal - batch.signal).abs().max().item() == pytest.approx(expected, rel=1e-4)
    assert torch.equal(changed.label, batch.label)
