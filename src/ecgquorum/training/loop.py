"""The training loop: plain, a checkpoint after every epoch, the best of them deployed."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

from ecgquorum._internal.seeds import derive_seed
from ecgquorum.errors import DivergedError
from ecgquorum.parallel import distributed
from ecgquorum.recipes import TrainingRecipe
from ecgquorum.training.batches import n_batches
from ecgquorum.training.checkpoint import Checkpoint, copy_weights, optimiser_state, restore_optimiser
from ecgquorum.training.phases import Phase
from ecgquorum.training.strategy import Unit

Row = dict[str, Any]
"""An epoch's line of history."""

_WARM_UP = 0.3
_CALM = 0.04  # where one-cycle begins, as a share of the peak


class Observer(Protocol):
    """Who wants to be told how training goes."""

    def on_unit(self, unit: Unit, epochs: int, found: bool) -> None:
        """A training begins, or was found finished in the store."""

    def on_batch(self, unit: Unit, epoch: int, batch: int, n_batches: int, loss: float) -> None:
        """A batch is done."""

    def on_epoch(self, unit: Unit, row: Row) -> None:
        """An epoch is done and stored."""


class SilentObserver:
    """An observer who does not want to be told."""

    def on_unit(self, unit: Unit, epochs: int, found: bool) -> None:
        """Say nothing."""

    def on_batch(self, unit: Unit, epoch: int, batch: int, n_batches: int, loss: float) -> None:
        """Say nothing."""

    def on_epoch(self, unit: Unit, row: Row) -> None:
        """Say nothing."""


def train_unit(
    phase: Phase, unit: Unit, path: Path, observer: Observer, record: Callable[[list[Row]], None]
) -> Checkpoint:
    """Train a unit to its end, going on from its checkpoint if there is one; leave its members with the best weights.

    Best is the highest accuracy on the tune part as the phase judges it; between equals, the lower loss there.
    `record` is given the unit's whole history after every epoch.
    """
    plan = phase.setting.plan
    phase.network.to(phase.setting.device)
    optimiser = torch.optim.AdamW(phase.network.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
    state = _resumed(path, unit, phase, optimiser)
    steps_per_epoch = n_batches(phase.setting.cohort, plan)
    for epoch in range(state.epoch, plan.epochs):
        started = time.perf_counter()
        loss = _train_epoch(phase, unit, optimiser, epoch, steps_per_epoch, observer)
        tuned = phase.judged()
        score = (tuned.accuracy, -tuned.loss)
        if epoch == 0 or score > state.best_score:
            state.best, state.best_score = copy_weights(phase.network), score
        row = {
            "phase": unit.phase,
            "member": unit.label,
            "epoch": epoch + 1,
            "loss": loss,
            "tune_loss": tuned.loss,
            "tune_accuracy": tuned.accuracy,
            "learning_rate": learning_rate(plan, (epoch + 1) * steps_per_epoch - 1, plan.epochs * steps_per_epoch),
            **phase.taken(),
            "seconds": time.perf_counter() - started,
        }
        state.epoch = epoch + 1
        state.history = [*state.history, row]
        state.weights, state.optimiser = phase.network.state_dict(), optimiser_state(optimiser)
        if distributed.is_first():
            state.save(path)
        record(state.history)
        observer.on_epoch(unit, row)
    phase.network.load_state_dict(state.best)
    return state


def learning_rate(plan: TrainingRecipe, step: int, n_steps: int) -> float:
    """The rate at a step: constant, or one cycle of half cosines up to the given rate and down to nothing."""
    if plan.schedule == "constant":
        return plan.learning_rate
    done = (step + 1) / n_steps
    if done < _WARM_UP:
        rise = 0.5 - 0.5 * math.cos(math.pi * done / _WARM_UP)
        return plan.learning_rate * (_CALM + (1 - _CALM) * rise)
    return plan.learning_rate * (0.5 + 0.5 * math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))


def _train_epoch(
    phase: Phase, unit: Unit, optimiser: torch.optim.Optimizer, epoch: int, steps_per_epoch: int, observer: Observer
) -> float:
    """One pass over the train part; returns the mean loss.

    Dropout draws from PyTorch's global generator, which is seeded for this epoch and given back afterwards.
    """
    setting = phase.setting
    phase.network.train()
    phase.begin_epoch(epoch)
    total, seen = 0.0, 0
    with torch.random.fork_rng(devices=[setting.device] if setting.device.type == "cuda" else []):
        torch.manual_seed(derive_seed(setting.recipe.seed, *setting.stream, "epoch", epoch, "dropout"))
        for number, (batch, indices) in enumerate(setting.batches(epoch)):
            step = epoch * steps_per_epoch + number
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(setting.plan, step, setting.plan.epochs * steps_per_epoch)
            optimiser.zero_grad(set_to_none=True)
            share, value = distributed.shard_batch(len(indices)), torch.zeros((), dtype=torch.float64)
            for term in phase.losses(batch, indices):
                term.backward()  # type: ignore[no-untyped-call]
                value += term.item()
            share.add_up([p.grad for p in phase.network.parameters() if p.grad is not None])
            share.add_up([value])
            optimiser.step()
            if not value.isfinite():
                raise DivergedError(
                    f"{unit.phase} training of member {unit.label}, epoch {epoch + 1}: expected a finite loss, "
                    f"found {value:g}; lower the learning rate, or look for broken recordings"
                )
            total += value.item() * len(batch.label)
            seen += len(batch.label)
            observer.on_batch(unit, epoch + 1, number + 1, steps_per_epoch, value.item())
    return total / seen


def _resumed(path: Path, unit: Unit, phase: Phase, optimiser: torch.optim.Optimizer) -> Checkpoint:
    """The stored state put into the phase's members and `optimiser`, or a state at the very beginning."""
    state = Checkpoint.load(path, unit.identity) if path.is_file() else None
    distributed.check_alike("checkpoint", f"{path.name} {state.epoch if state else None}")
    if state is None:
        return Checkpoint(unit.identity, 0, {}, {}, {}, (-math.inf, -math.inf))
    phase.network.load_state_dict(state.weights)
    restore_optimiser(optimiser, state.optimiser)
    return state
