"""Decorrelation in training: the right rows, the right weight, and batches that are too small."""

from dataclasses import replace

import pytest
import torch

from ecgquorum.losses import conditional_decorrelation, decorrelation
from ecgquorum.members import forward_with_features
from ecgquorum.strategies import Decorrelation, Harden
from ecgquorum.training.phase import BasePhase


@pytest.fixture
def step_of(context_of, tiny_ensemble, tiny_cohort):
    """The step of a batch of train recordings with given features, against stored ones of every train recording."""

    def step_of(features, stored, rows):
        context = context_of(list(tiny_ensemble.members)[:1], earlier=[stored], indices=[1])
        indices = tiny_cohort.part("train")[rows]
        step = context.step(0, tiny_cohort.batch(indices, tiny_ensemble.input), indices)
        return replace(step, features=features, generator=torch.Generator().manual_seed(1))

    return step_of


def test_the_term_is_lambda_times_the_loss_of_the_right_rows(step_of):
    stored = [torch.randn(48, 16), torch.randn(48, 16)]
    rows = [40, 3, 17, 22, 8, 30, 1, 12, 44, 9]
    features = torch.randn(10, 16, requires_grad=True)
    found = Decorrelation("paper", 0.7, projected=4).loss_terms(step_of(features, stored, rows))
    expected = 0.7 * decorrelation(
        features, [z[rows] for z in stored], generator=torch.Generator().manual_seed(1), n_projected=4
    )
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(value, features)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_small_batches_are_counted_as_skipped(step_of):
    strategy, stored = Decorrelation("paper", projected=4), [torch.randn(48, 16)]
    small = step_of(torch.randn(5, 16, requires_grad=True), stored, list(range(5)))
    assert strategy.loss_terms(small) == 0.0
    assert small.stats.pop()["decorrelation_skipped"] == 1
    large = step_of(torch.randn(20, 16, requires_grad=True), stored, list(range(20)))
    assert strategy.loss_terms(large) > 0
    stats = large.stats.pop()
    assert stats["decorrelation_skipped"] == 0 and stats["decorrelation"] > 0 and stats["decorrelation_seconds"] > 0
    assert large.stats.pop() == {}


def test_the_first_member_has_nothing_to_be_decorrelated_from(context_of, tiny_ensemble):
    context = context_of(list(tiny_ensemble.members)[:1], Decorrelation(projected=4))
    batch, indices = next(context.batches(0))
    (loss,) = BasePhase(context.options, context.strategy).losses(context, batch, indices)
    assert loss > 0 and context.stats.pop() == {}


def test_earlier_members_see_the_same_view_before_it_is_attacked(context_of, tiny_ensemble):
    first, second = list(tiny_ensemble.members)[:2]
    strategy = Harden(share=1.0, epsilon=50.0) + Decorrelation(projected=4)
    context = context_of([second], strategy, earlier=[[first]], indices=[1])
    batch, indices = next(context.batches(0))
    batch = batch._replace(signal=-1.3 * batch.signal)
    first.train()
    before = {name: value.clone() for name, value in first.state_dict().items()}
    step = context.step(0, batch, indices)
    assert first.training and all(torch.equal(value, before[name]) for name, value in first.state_dict().items())
    first.eval()
    with torch.no_grad():
        logits, features = forward_with_features(first, batch.signal)
    torch.testing.assert_close(step.earlier_logits, [logits])
    torch.testing.assert_close(step.earlier, [features])
    attacked = step.with_batch(strategy.change_batch(step))
    assert not torch.equal(attacked.batch.signal, batch.signal)
    torch.testing.assert_close(attacked.earlier_logits, [logits])
    assert context.step(0, batch).earlier_logits == []
    assert context.stats.pop()["earlier_seconds"] > 0


@pytest.mark.parametrize("form", ["logits", "conditional"])
def test_the_conditional_forms_are_of_this_batch_and_its_classes(form, context_of, tiny_ensemble):
    first, second = list(tiny_ensemble.members)[:2]
    context = context_of([second], earlier=[[first, second]], indices=[2])
    step = context.step(0, *next(context.batches(0)))
    logits, features = (x.detach().requires_grad_() for x in forward_with_features(second, step.batch.signal))
    step = replace(step, logits=logits, features=features, generator=torch.Generator().manual_seed(1))
    found = Decorrelation(form, 0.7, projected=4).loss_terms(step)
    mine, earlier = (logits, step.earlier_logits) if form == "logits" else (features, step.earlier)
    if form == "logits":  # any basis of the differences of logits
        mine, *earlier = (x[:, 1:] - x[:, :1] for x in (mine, *earlier))
    expected = 0.7 * conditional_decorrelation(
        mine, earlier, step.batch.label, generator=torch.Generator().manual_seed(1), n_projected=4
    )
    assert found > 0
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    leaf = logits if form == "logits" else features
    gradients = [torch.autograd.grad(value, leaf)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)


def test_logits_are_not_stored(step_of):
    with pytest.raises(ValueError, match="not their stored features"):
        Decorrelation().loss_terms(step_of(torch.randn(20, 16), [torch.randn(48, 16)], list(range(20))))


def test_defaults_follow_the_form():
    assert [Decorrelation(form).weight for form in ("logits", "conditional", "paper")] == [0.05, 0.3, 0.2]
    assert [Decorrelation(form).projected for form in ("logits", "conditional", "paper")] == [16, 16, 32]
    assert Decorrelation().form == "logits"
    assert Decorrelation("paper", projected=7).parameters["projected"] == 7
