"""The training of one member: a plain loop, a checkpoint after every epoch, the best of them deployed."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ecgquorum.cohorts import Batch, Cohort
from ecgquorum.errors import TrainingError
from ecgquorum.members import Member
from ecgquorum.randomness import derived_seed
from ecgquorum.recipe import Recipe, TrainingRecipe
from ecgquorum.recordings import InputSpec
from ecgquorum.training.batches import n_batches, training_batches
from ecgquorum.training.checkpoint import Checkpoint, copied_weights, optimiser_state, restore_optimiser

Objective = Callable[[Member, Batch], Tensor]
"""The loss of a batch."""

_EVALUATION_BATCH = 64
_WARM_UP = 0.3
_CALM = 0.04  # where one-cycle begins, as a share of the peak


class Observer(Protocol):
    """Who wants to be told how training goes."""

    def on_batch(self, member: int, epoch: int, batch: int, n_batches: int, loss: float) -> None:
        """A batch is done."""

    def on_epoch(self, member: int, row: dict[str, float]) -> None:
        """An epoch is done and stored; `row` is its line of history."""


class Silent:
    """An observer who does not want to be told."""

    def on_batch(self, member: int, epoch: int, batch: int, n_batches: int, loss: float) -> None:
        """Say nothing."""

    def on_epoch(self, member: int, row: dict[str, float]) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Evaluation:
    """How a member does on a part of the cohort."""

    loss: float
    accuracy: float


def cross_entropy(label_smoothing: float) -> Objective:
    """The ordinary objective."""

    def objective(member: Member, batch: Batch) -> Tensor:
        return F.cross_entropy(member(batch.signal), batch.label, label_smoothing=label_smoothing)

    return objective


def train_member(
    member: Member,
    cohort: Cohort,
    spec: InputSpec,
    recipe: Recipe,
    index: int,
    checkpoint_path: Path,
    *,
    identity: str,
    device: torch.device,
    observer: Observer,
    objective: Objective | None = None,
) -> Checkpoint:
    """Train member number `index`, going on from its checkpoint if there is one; leave it with its best weights.

    Best is the highest accuracy on the tune part; between equals, the lower loss there.
    """
    plan = recipe.training
    objective = objective or cross_entropy(plan.label_smoothing)
    member.to(device)
    optimiser = torch.optim.AdamW(member.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
    state = _resumed(checkpoint_path, identity, member, optimiser)
    steps_per_epoch = n_batches(cohort, plan)
    if steps_per_epoch == 0 or len(cohort.part("tune")) == 0:
        raise TrainingError(f"{cohort.path}: expected recordings to train and to tune on, found too few")
    for epoch in range(state.epoch, plan.epochs):
        started = time.perf_counter()
        loss = _train_epoch(
            member,
            optimiser,
            objective,
            cohort,
            spec,
            recipe,
            index,
            epoch,
            steps_per_epoch,
            device,
            observer,
        )
        tuned = evaluate_member(member, cohort, cohort.part("tune"), spec, device)
        score = (tuned.accuracy, -tuned.loss)
        if state.epoch == 0 or score > state.best_score:
            state.best, state.best_score = copied_weights(member), score
        row = {
            "member": index,
            "epoch": epoch + 1,
            "loss": loss,
            "tune_loss": tuned.loss,
            "tune_accuracy": tuned.accuracy,
            "learning_rate": learning_rate(plan, (epoch + 1) * steps_per_epoch - 1, plan.epochs * steps_per_epoch),
            "seconds": time.perf_counter() - started,
        }
        state.epoch = epoch + 1
        state.history = [*state.history, row]
        state.weights, state.optimiser = member.state_dict(), optimiser_state(optimiser)
        state.save(checkpoint_path)
        observer.on_epoch(index, row)
    member.load_state_dict(state.best)
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


def evaluate_member(
    member: Member, cohort: Cohort, indices: np.ndarray, spec: InputSpec, device: torch.device
) -> Evaluation:
    """Cross-entropy and accuracy on these recordings, whole windows, in evaluation mode."""
    member.eval()
    loss, right = 0.0, 0
    with torch.inference_mode():
        for start in range(0, len(indices), _EVALUATION_BATCH):
            batch = cohort.batch(indices[start : start + _EVALUATION_BATCH], spec).to(device)
            logits = member(batch.signal)
            loss += F.cross_entropy(logits, batch.label, reduction="sum").item()
            right += int((logits.argmax(dim=1) == batch.label).sum())
    return Evaluation(loss / len(indices), right / len(indices))


def _train_epoch(
    member: Member,
    optimiser: torch.optim.Optimizer,
    objective: Objective,
    cohort: Cohort,
    spec: InputSpec,
    recipe: Recipe,
    index: int,
    epoch: int,
    steps_per_epoch: int,
    device: torch.device,
    observer: Observer,
) -> float:
    """One pass over the train part; returns the mean loss.

    Dropout draws from PyTorch's global generator, which is seeded for this epoch and given back afterwards.
    """
    plan = recipe.training
    member.train()
    total, seen = 0.0, 0
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(derived_seed(recipe.seed, "member", index, "epoch", epoch, "dropout"))
        batches = training_batches(cohort, spec, plan, seed=recipe.seed, member=index, epoch=epoch)
        for number, batch in enumerate(batches):
            step = epoch * steps_per_epoch + number
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(plan, step, plan.epochs * steps_per_epoch)
            loss = objective(member, batch.to(device))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            value = loss.item()
            if not math.isfinite(value):
                raise TrainingError(
                    f"member {index}, epoch {epoch + 1}: expected a finite loss, found {value}; "
                    "lower training.learning_rate, or look for broken recordings"
                )
            total += value * len(batch.label)
            seen += len(batch.label)
            observer.on_batch(index, epoch + 1, number + 1, steps_per_epoch, value)
    return total / seen


def _resumed(path: Path, identity: str, member: Member, optimiser: torch.optim.Optimizer) -> Checkpoint:
    """The stored state put into `member` and `optimiser`, or a state at the very beginning."""
    if not path.is_file():
        return Checkpoint(identity, 0, {}, {}, {}, (-math.inf, -math.inf))
    state = Checkpoint.load(path)
    if state.identity != identity:
        raise TrainingError(
            f"{path}: expected a checkpoint of this recipe, cohort and seed, found one of another; "
            "choose another --out, or go back to the recipe and cohort it was begun with"
        )
    member.load_state_dict(state.weights)
    restore_optimiser(optimiser, state.optimiser)
    return state
