"""The loop: the best epoch is kept, and the learning rate follows its schedule."""

import dataclasses

import numpy as np
import pytest
import torch

from ecgquorum.recipes import TrainingRecipe
from ecgquorum.training import plan_jobs
from ecgquorum.training.loop import fit_job, learning_rate
from ecgquorum.training.phase import BasePhase
from ecgquorum.training.validation import Evaluation


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
    state = fit_job(job, phase, context, tmp_path / "checkpoint.safetensors", lambda *_: None, rows.append)
    assert torch.equal(member.head.weight, seen[2])
    assert not torch.equal(member.head.weight, seen[3])
    assert state.best_score == (0.8, -0.8)
    assert [len(history) for history in rows] == [1, 2, 3, 4]


def test_the_one_cycle_rises_and_falls():
    options = TrainingRecipe(learning_rate=2.0)
    rates = [learning_rate(options, step, 100) for step in range(100)]
    assert max(rates) == pytest.approx(2.0, rel=1e-3)
    assert 25 <= int(np.argmax(rates)) <= 35
    assert rates[0] < 0.15
    assert rates[-1] == pytest.approx(0, abs=1e-9)
    assert learning_rate(TrainingRecipe(schedule="constant", learning_rate=0.1), 50, 100) == 0.1
