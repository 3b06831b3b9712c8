"""A small recipe with all strategies, and members in training without a run around them."""

import pytest
import torch

from ecgquorum.recipes import parse_recipe
from ecgquorum.training import PhaseContext, check_trainable
from ecgquorum.training.strategies import Baseline
from tests.conftest import TINY_RECIPE

TOY = (
    TINY_RECIPE.replace("members = 2", "members = 3")
    .replace("batch_size = 16", "batch_size = 24")
    .replace('name = "tiny"', 'name = "toy"')
    + """
[strategies.dec]
projected = 4
[strategies.adv]
steps = 2
epochs = 2
[strategies.dverge]
steps = 2
epochs = 2
[strategies.harden]
epsilon = 50.0
"""
)


class Stopper:
    """A progress that interrupts training after every epoch."""

    def update(self, text, done, total):
        pass

    def log(self, line):
        if "found in the store" not in line:
            raise KeyboardInterrupt


@pytest.fixture(scope="session")
def toy():
    return parse_recipe(TOY)


@pytest.fixture(scope="session")
def plan_of(toy, tiny_cohort):
    """The prepared plan of a strategy; `text` replaces the recipe."""

    def plan_of(strategy, text=TOY):
        return check_trainable(parse_recipe(text).with_strategy(strategy), tiny_cohort)

    return plan_of


@pytest.fixture
def context_of(toy, tiny_cohort, tiny_ensemble):
    """A context in which members are trained in a phase."""

    def context_of(members, strategy=None, **changes):
        fields = {
            "members": members,
            "indices": range(len(members)),
            "phase": "base",
            "cohort": tiny_cohort,
            "spec": tiny_ensemble.input,
            "options": toy.training,
            "strategy": strategy or Baseline(),
            "earlier": [[] for _ in members],
            "device": torch.device("cpu"),
            "seed": 0,
            "stream": ("test",),
        }
        context = PhaseContext(**(fields | changes))
        context.network.train()
        context.begin_epoch(0)
        return context

    return context_of


def run_backward(phase, context, batch, indices):
    phase.begin_epoch(context, context.epoch)
    for term in phase.losses(context, batch, indices):
        term.backward()
