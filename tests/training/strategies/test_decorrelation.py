"""Decorrelation in training: the right rows, the right weight, and batches that are too small."""

import pytest
import torch

from ecgquorum.losses import decorrelation
from ecgquorum.strategies import Decorrelation
from ecgquorum.training.phase import BasePhase


@pytest.fixture
def step_of(context_of, tiny_ensemble, tiny_cohort):
    """The step of a batch of train recordings with given features, against stored ones of every train recording."""

    def step_of(features, stored, rows):
        from dataclasses import replace

        context = context_of(list(tiny_ensemble.members)[:1], earlier=[stored], indices=[1])
        indices = tiny_cohort.part("train")[rows]
        step = context.step(0, tiny_cohort.batch(indices, tiny_ensemble.input), indices)
        return replace(step, features=features, generator=torch.Generator().manual_seed(1))

    return step_of


def test_the_term_is_lambda_times_the_loss_of_the_right_rows(step_of):
    stored = [torch.randn(48, 16), torch.randn(48, 16)]
    rows = [40, 3, 17, 22, 8, 30, 1, 12, 44, 9]
    features = torch.randn(10, 16, requires_grad=True)
    found = Decorrelation(weight=0.7, projected=4).loss_terms(step_of(features, stored, rows))
    expected = 0.7 * decorrelation(
        features, [z[rows] for z in stored], generator=torch.Generator().manual_seed(1), n_projected=4
    )
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(value, features)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_small_batches_are_counted_as_skipped(step_of):
    strategy, stored = Decorrelation(projected=4), [torch.randn(48, 16)]
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
