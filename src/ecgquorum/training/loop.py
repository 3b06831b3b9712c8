"""The training loop: a checkpoint after every epoch; the average of the weights is kept, or the best epoch."""

import copy
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ecgquorum._internal.seeds import derive_seed
from ecgquorum.errors import DivergedError
from ecgquorum.parallel import distributed
from ecgquorum.recipes import TrainingRecipe
from ecgquorum.training.batches import n_batches
from ecgquorum.training.checkpoint import Checkpoint, CheckpointFile, copy_weights, optimiser_state, restore_optimiser
from ecgquorum.training.head_refit import refit_head
from ecgquorum.training.history import HistoryRow
from ecgquorum.training.jobs import TrainingJob
from ecgquorum.training.phase import Phase, PhaseContext
from ecgquorum.training.weight_average import WeightAverage

_WARM_UP = 0.3
_START = 0.04  # the learning rate at which one-cycle starts, as a share of its peak

OnBatch = Callable[[int, int, int, float], None]
"""Called after every batch with the epoch from 1, the batch from 1, the batches in an epoch and the loss."""


def fit_job(
    job: TrainingJob,
    phase: Phase,
    context: PhaseContext,
    file: CheckpointFile,
    on_batch: OnBatch,
    on_epoch: Callable[[list[HistoryRow]], None],
) -> Checkpoint:
    """Train a job to its end, from its checkpoint if there is one, and leave its members with the weights to keep.

    With `ema`, these are the moving average at the end. Without, those of the epoch with the highest accuracy of
    `phase.validate`; of equals, the one with the lower loss.

    file:     the checkpoint
    on_epoch: called with the job's whole history after every epoch
    """
    options = context.options
    context.network.to(context.device)
    optimiser = torch.optim.AdamW(
        context.network.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
    )
    state = _restore(file, job, context, optimiser)
    steps_per_epoch = n_batches(context.cohort, options)
    average = None
    if options.ema:
        average = WeightAverage(context.network, options.ema, state.best, state.epoch * steps_per_epoch)
    for epoch in range(state.epoch, options.epochs):
        started = time.perf_counter()
        loss = _train_epoch(job, phase, context, Updater(context, optimiser, average), epoch, on_batch)
        with average.use() if average else nullcontext():
            tuned = phase.validate(context)
            score = (tuned.accuracy, -tuned.loss)
            if average or epoch == 0 or score > state.best_score:
                state.best, state.best_score = copy_weights(context.network), score
        if options.refit_head and epoch + 1 == options.epochs:
            state.best = _refit_heads(context, state.best)
        row = {
            "phase": job.phase,
            "member": job.label,
            "epoch": epoch + 1,
            "loss": loss,
            "tune_loss": tuned.loss,
            "tune_accuracy": tuned.accuracy,
            "learning_rate": learning_rate(
                options, (epoch + 1) * steps_per_epoch - 1, options.epochs * steps_per_epoch
            ),
            **context.stats.pop(),
            "seconds": time.perf_counter() - started,
        }
        state.epoch = epoch + 1
        state.history = [*state.history, row]
        state.weights, state.optimiser = context.network.state_dict(), optimiser_state(optimiser)
        if distributed.is_first():
            file.save(state)
        on_epoch(state.history)
    context.network.load_state_dict(state.best)
    return state


def learning_rate(options: TrainingRecipe, step: int, n_steps: int) -> float:
    """Return the rate at a step: constant, or one cycle of half cosines up to the given rate and down to 0."""
    if options.schedule == "constant":
        return options.learning_rate
    done = (step + 1) / n_steps
    if done < _WARM_UP:
        rise = 0.5 - 0.5 * math.cos(math.pi * done / _WARM_UP)
        return options.learning_rate * (_START + (1 - _START) * rise)
    return options.learning_rate * (0.5 + 0.5 * math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))


@dataclass
class Updater:
    """Changes the weights by a gradient: sets the learning rate, clips, steps, and averages."""

    context: PhaseContext
    optimiser: torch.optim.Optimizer
    average: WeightAverage | None

    def begin(self, step: int, n_steps: int) -> None:
        """Set the learning rate of a step, and forget the last gradient."""
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.context.options, step, n_steps)
        self.optimiser.zero_grad(set_to_none=True)

    def end(self) -> None:
        """Change the weights by the gradient."""
        if self.context.options.clip is not None:
            nn.utils.clip_grad_norm_(self.context.network.parameters(), self.context.options.clip)
        self.optimiser.step()
        if self.average:
            self.average.update()


def _train_epoch(
    job: TrainingJob, phase: Phase, context: PhaseContext, updater: Updater, epoch: int, on_batch: OnBatch
) -> float:
    """Train on the train part once; return the mean loss.

    Dropout draws from PyTorch's global generator, which is seeded for this epoch and restored afterwards.
    """
    options, steps_per_epoch = context.options, n_batches(context.cohort, context.options)
    context.network.train()
    context.begin_epoch(epoch)
    phase.begin_epoch(context, epoch)
    total, seen = 0.0, 0
    with torch.random.fork_rng(devices=[context.device] if context.device.type == "cuda" else []):
        torch.manual_seed(derive_seed(context.seed, *context.stream, "epoch", epoch, "dropout"))
        for number, (batch, indices) in enumerate(context.batches(epoch)):
            step = epoch * steps_per_epoch + number
            updater.begin(step, options.epochs * steps_per_epoch)
            share, value = distributed.shard_batch(len(indices)), torch.zeros((), dtype=torch.float64)
            for term in phase.losses(context, batch, indices):
                term.backward()  # type: ignore[no-untyped-call]
                value += term.item()
            share.add_up([p.grad for p in context.network.parameters() if p.grad is not None])
            share.add_up([value])
            updater.end()
            if not value.isfinite():
                raise DivergedError(
                    f"{job.title}, epoch {epoch + 1}: the loss became {value:g}; lower the learning rate, or look for "
                    "broken recordings"
                )
            total += value.item() * len(batch.label)
            seen += len(batch.label)
            on_batch(epoch + 1, number + 1, steps_per_epoch, value.item())
    return total / seen


def _refit_heads(context: PhaseContext, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights with the last layer of each member fitted again."""
    members = copy.deepcopy(context.network)
    members.load_state_dict(weights)
    for member in members:
        refit_head(member, context.cohort, context.spec)
    return copy_weights(members)


def _restore(
    file: CheckpointFile, job: TrainingJob, context: PhaseContext, optimiser: torch.optim.Optimizer
) -> Checkpoint:
    """Load the stored state into members and optimiser; return it, or a new one where nothing is stored."""
    state = file.load(job.identity)
    distributed.check_alike("checkpoint", f"{file.name} {state.epoch if state else None}")
    if state is None:
        return Checkpoint(job.identity, 0, {}, {}, {}, (-math.inf, -math.inf))
    context.network.load_state_dict(state.weights)
    restore_optimiser(optimiser, state.optimiser)
    return state
