"""The loop: the average of the weights or the best epoch is kept, and the learning rate follows its schedule."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from ecgquorum.recipes import TrainingRecipe
from ecgquorum.storage import LocalStore
from ecgquorum.training import plan_jobs
from ecgquorum.training.checkpoint import CheckpointFile
from ecgquorum.training.loop import Updater, fit_job, learning_rate
from ecgquorum.training.phase import BasePhase
from ecgquorum.training.validation import Evaluation
from ecgquorum.training.weight_average import WeightAverage


def test_the_best_epoch_is_kept_not_the_last(context_of, plan_of, tiny_ensemble, tmp_path):
    member = tiny_ensemble.members[0]
    scores = iter([Evaluation(1.0, 0.5), Evaluation(0.9, 0.8), Evaluation(0.8, 0.8), Evaluation(0.1, 0.6)])
    seen = []

    class Scripted(BasePhase):
        def validate(self, context):
            seen.append(member.head.weight.detach().clone())
            return next(scores)

    plan = plan_of("baseline")
    options = plan.recipe.training.model_copy(update={"epochs": 4})
    job = dataclasses.replace(plan_jobs(plan, "data")[0], epochs=4)
    context, rows = context_of([member], options=options), []
    phase = Scripted(options, plan.strategy)
    state = fit_job(
        job,
        phase,
        context,
        CheckpointFile(LocalStore(tmp_path), "checkpoint.safetensors"),
        lambda *_: None,
        rows.append,
    )
    assert torch.equal(member.head.weight, seen[2])
    assert not torch.equal(member.head.weight, seen[3])
    assert state.best_score == (0.8, -0.8)
    assert [len(history) for history in rows] == [1, 2, 3, 4]


def test_the_average_of_the_weights_is_validated_and_kept_and_resumes_to_the_bit(
    context_of, plan_of, tiny_ensemble, tmp_path
):
    plan = plan_of("baseline")
    options = plan.recipe.training.model_copy(update={"epochs": 3, "ema": 0.9})
    job = dataclasses.replace(plan_jobs(plan, "data")[0], epochs=3)
    start = copy.deepcopy(tiny_ensemble.members[0])
    validated, last = [], []

    class Watched(BasePhase):
        def validate(self, context):
            validated.append(context.members[0].head.weight.detach().clone())
            return Evaluation(1.0, 1.0 / len(validated))

    class Interrupted(Exception):  # noqa: N818
        pass

    def train(folder, stop_after=None):
        member = copy.deepcopy(start)
        context = context_of([member], options=options)

        def on_epoch(history):
            last.append(member.head.weight.detach().clone())
            if len(history) == stop_after:
                raise Interrupted

        try:
            return fit_job(
                job,
                Watched(options, plan.strategy),
                context,
                CheckpointFile(LocalStore(folder), "c"),
                lambda *_: None,
                on_epoch,
            )
        finally:
            last.append(member.head.weight.detach().clone())

    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    state = train(tmp_path / "whole")
    assert torch.equal(last[-1], validated[-1])  # the end, although the first epoch had the best accuracy
    assert not torch.equal(validated[-1], last[-2])  # not the raw weights
    assert torch.equal(state.best["0.head.weight"], validated[-1])
    with pytest.raises(Interrupted):
        train(tmp_path / "parts", stop_after=2)
    resumed = train(tmp_path / "parts")
    assert all(torch.equal(tensor, resumed.best[name]) for name, tensor in state.best.items())


def test_the_average_follows_its_formula():
    network = torch.nn.Linear(1, 1, bias=False)
    weights, expected = [3.0, 5.0, -1.0, 4.0], 1.0
    torch.nn.init.constant_(network.weight, expected)
    average = WeightAverage(network, 0.25, {}, 0)
    for step, value in enumerate(weights, start=1):
        torch.nn.init.constant_(network.weight, value)
        average.update()
        decay = min(0.25, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    with average.use():
        assert network.weight.item() == pytest.approx(expected, rel=1e-6)
    assert network.weight.item() == weights[-1]


def test_gradients_are_clipped_to_their_norm(context_of, plan_of, tiny_ensemble):
    member = tiny_ensemble.members[0]
    options = plan_of("baseline").recipe.training.model_copy(update={"clip": 1e-3})
    optimiser = torch.optim.SGD(member.parameters(), lr=1.0)
    updater = Updater(context_of([member], options=options), optimiser, None)
    before = torch.nn.utils.parameters_to_vector(member.parameters()).detach().clone()
    for parameter in member.parameters():
        parameter.grad = torch.ones_like(parameter)
    updater.end()
    moved = torch.nn.utils.parameters_to_vector(member.parameters()).detach() - before
    assert moved.norm().item() == pytest.approx(1e-3, rel=1e-2)


def test_the_head_is_fitted_again_at_the_end_where_asked_for(context_of, plan_of, tiny_ensemble, tmp_path):
    plan = plan_of("baseline")
    states = {}
    for refit in (False, True):
        options = plan.recipe.training.model_copy(update={"epochs": 1, "refit_head": refit})
        context = context_of([copy.deepcopy(tiny_ensemble.members[0])], options=options)
        job, phase = dataclasses.replace(plan_jobs(plan, "data")[0], epochs=1), BasePhase(options, plan.strategy)
        states[refit] = fit_job(
            job, phase, context, CheckpointFile(LocalStore(tmp_path), str(refit)), lambda *_: None, lambda _: None
        ).best
    changed = {name for name, tensor in states[False].items() if not torch.equal(tensor, states[True][name])}
    assert changed == {"0.head.weight", "0.head.bias"}


def test_the_one_cycle_rises_and_falls():
    options = TrainingRecipe(learning_rate=2.0)
    rates = [learning_rate(options, step, 100) for step in range(100)]
    assert max(rates) == pytest.approx(2.0, rel=1e-3)
    assert 25 <= int(np.argmax(rates)) <= 35
    assert rates[0] < 0.15
    assert rates[-1] == pytest.approx(0, abs=1e-9)
    assert learning_rate(TrainingRecipe(schedule="constant", learning_rate=0.1), 50, 100) == 0.1


def test_bfloat16_rounds_activations_in_training_and_neither_weights_nor_validation(context_of, plan_of, tiny_ensemble):
    plan = plan_of("baseline")
    member = copy.deepcopy(tiny_ensemble.members[0])
    kinds, gradients = {}, {}
    for precision in ("float32", "bfloat16"):
        context = context_of([member], options=plan.recipe.training.model_copy(update={"precision": precision}))
        seen = kinds.setdefault(precision, [])
        hook = member.blocks[1].first.conv.register_forward_hook(lambda _m, _x, y, seen=seen: seen.append(y.dtype))
        batch, indices = next(context.batches(0))
        torch.manual_seed(0)
        (loss,) = BasePhase(context.options, plan.strategy).losses(context, batch, indices)
        member.zero_grad()
        loss.backward()
        gradients[precision] = torch.cat([one.grad.flatten() for one in member.parameters()])
        assert loss.dtype == torch.float32
        BasePhase(context.options, plan.strategy).validate(context)
        hook.remove()
    assert kinds["float32"] == [torch.float32] * len(kinds["float32"])
    assert kinds["bfloat16"][0] == torch.bfloat16 and set(kinds["bfloat16"][1:]) <= {torch.float32}
    assert {one.dtype for one in member.parameters()} == {torch.float32}
    assert torch.cosine_similarity(*gradients.values(), dim=0) > 0.95
