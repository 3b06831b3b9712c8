"""DVERGE: each member is trained on what was distilled from the others."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ecgquorum.errors import TrainingError
from ecgquorum.members import MEMBERS, build_member, norm_layers, norm_output
from ecgquorum.strategies import Dverge, RunFacts
from ecgquorum.training.phase import BasePhase
from ecgquorum.training.strategies.adversarial_training import AdversarialPhase, AdversarialTraining
from ecgquorum.training.strategies.dverge import DvergePhase, choose_other_classes

from ..conftest import run_backward

STRATEGY = Dverge(epsilon=10.0, steps=2)


def make_phase(kind, context):
    if kind == "base":
        return BasePhase(context.options, context.strategy)
    return DvergePhase(STRATEGY) if kind == "dverge" else AdversarialPhase(AdversarialTraining(epsilon=10.0, steps=2))


@pytest.mark.parametrize("kind", ["base", "adv", "dverge"])
def test_validation_leaves_statistics_and_modes_alone(kind, context_of, tiny_ensemble):
    members = list(tiny_ensemble.members)
    context = context_of(members if kind == "dverge" else members[:1])
    phase = make_phase(kind, context)
    before = {name: tensor.clone() for name, tensor in context.network.state_dict().items()}
    assert phase.validate(context) == phase.validate(context)
    assert all(torch.equal(before[name], tensor) for name, tensor in context.network.state_dict().items())
    assert all(module.training for module in context.network.modules())


def test_each_member_is_trained_on_what_was_distilled_from_the_others(context_of, tiny_ensemble, monkeypatch):
    members = list(tiny_ensemble.members)
    context = context_of(members)
    phase, made, used = DvergePhase(STRATEGY), [], []
    distill, loss = phase._distill_from, context.loss

    def distill_and_record(member, source, target, layer):
        made.append((members.index(member), distill(member, source, target, layer), source, layer))
        return made[-1][1]

    def loss_and_record(step):
        used.append(step)
        return loss(step)

    monkeypatch.setattr(phase, "_distill_from", distill_and_record)
    monkeypatch.setattr(context, "loss", loss_and_record)
    layers = Counter()
    phase.begin_epoch(context, 0)
    for batch, indices in context.batches(0):
        made.clear(), used.clear()
        for term in phase.losses(context, batch, indices):
            term.backward()
        source_of = {id(changed): i for i, changed, _, _ in made}
        assert [(step.index, source_of[id(step.batch)]) for step in used] == [(0, 1), (1, 0)]
        assert all(torch.equal(step.batch.label, made[0][2].label) for step in used)
        assert not torch.equal(used[0].batch.label, batch.label), "sources are another draw than targets"
        assert len({layer for *_, layer in made}) == 1
        layers.update(layer for *_, layer in made)
    for member in members:
        assert all(parameter.grad is not None for parameter in member.parameters())
    generator = context.make_generator("layers")
    for _ in range(12):
        phase._distill(context, batch, batch, generator)
    layers.update(layer for *_, layer in made)
    assert len(layers) > 2


def test_features_of_earlier_members_are_those_of_the_sources(context_of, tiny_ensemble, monkeypatch):
    """What is decorrelated are features of changed sources, so the stored rows must be theirs too."""
    members, stored = list(tiny_ensemble.members), torch.arange(48.0)[:, None].expand(48, 16).contiguous()
    context = context_of(members, earlier=[[], [stored]])
    batch, indices = next(context.batches(0))
    phase, used, loss = DvergePhase(STRATEGY), [], context.loss
    monkeypatch.setattr(context, "loss", lambda step: used.append(step) or loss(step))
    run_backward(phase, context, batch, indices)
    (with_earlier,) = [step for step in used if step.index == 1]
    rows = with_earlier.earlier[0][:, 0].long().numpy()
    labels = context.cohort.labels[context.cohort.part("train")[rows]]
    assert labels.tolist() == with_earlier.batch.label.tolist()


def test_validation_is_on_what_was_distilled_from_the_others(context_of, tiny_ensemble):
    members = list(tiny_ensemble.members)
    context = context_of(members)
    phase = DvergePhase(Dverge(epsilon=1000.0, steps=2))  # or these members would hardly notice
    generator, losses = context.make_generator("judge"), []
    (source,) = context.tune_batches()
    order = torch.randperm(len(source.label), generator=generator)
    distilled = phase._distill(context, source, source.of(order), generator)
    for member, batch in zip(members, distilled[::-1], strict=True):
        losses.append(F.cross_entropy(member.eval()(batch.signal), batch.label).item())
    assert phase.validate(context).loss == pytest.approx(np.mean(losses), rel=1e-4)
    clean = np.mean([F.cross_entropy(m(source.signal), source.label).item() for m in members])
    assert phase.validate(context).loss != pytest.approx(clean, rel=1e-5)


@pytest.mark.parametrize("kind", list(MEMBERS.builtin))
def test_sources_and_targets_may_be_of_different_lengths(context_of, kind):
    """Each batch is padded to the window; a network that crops padding must crop the same of both."""
    member = build_member(kind, n_leads=1, n_classes=4, rate_hz=300.0, seed=0, options={"width": 0.05})
    context = context_of([member])
    (source, _), (target, _) = next(context.batches(0)), next(context.batches(1))
    n_samples = source.signal.shape[2]
    source, target = (
        batch._replace(signal=batch.signal * valid, valid=batch.valid & valid)
        for batch, valid in (
            (source, (torch.arange(n_samples) - n_samples // 2).abs() < n_samples // 8),
            (target, (torch.arange(n_samples) - n_samples // 2).abs() < n_samples // 4),
        )
    )
    layer = len(norm_layers(member)) // 2
    changed = DvergePhase(Dverge(epsilon=200.0, steps=4))._distill_from(member, source, target, layer)
    assert not changed.signal[~source.valid].any()
    assert (changed.signal - source.signal).abs().max() <= 200 * (1 + 1e-5)
    with torch.no_grad():
        wanted, before, after = (norm_output(member.eval(), b.signal, layer) for b in (target, source, changed))
    assert (after - wanted).square().mean() < (before - wanted).square().mean()


@pytest.mark.parametrize(("share", "expected"), [(0.25, 10.0), (0.5, 20.0)])
def test_a_step_is_a_share_of_epsilon(context_of, tiny_ensemble, share, expected):
    member = tiny_ensemble.members[0]
    context = context_of([member])
    (source, _), (target, _) = next(context.batches(0)), next(context.batches(1))
    changed = DvergePhase(Dverge(epsilon=40.0, steps=1, step=share))._distill_from(member, source, target, 1)
    assert (changed.signal - source.signal).abs().max().item() == pytest.approx(expected, rel=1e-4)


def test_sources_of_other_classes_can_be_chosen(context_of, tiny_ensemble):
    context = context_of(list(tiny_ensemble.members))
    (source, _), (target, _) = next(context.batches(0)), next(context.batches(1))
    order = choose_other_classes(source.label, target.label, torch.Generator().manual_seed(0))
    assert (source.label[order] != target.label).all()
    alone = torch.zeros(4, dtype=torch.long)
    assert choose_other_classes(alone, alone, torch.Generator().manual_seed(0)).shape == (4,)
    batch, indices = next(context.batches(0))
    run_backward(DvergePhase(Dverge(epsilon=10.0, steps=1, different_classes=True)), context, batch, indices)


def test_members_without_batch_norm_are_refused():
    facts = RunFacts(2, 1, 4, 16, len(norm_layers(nn.Linear(3, 4))), 300.0, "microvolt", 24)
    with pytest.raises(TrainingError, match="batch-norm layers, but the members have none"):
        Dverge().prepare(facts)
