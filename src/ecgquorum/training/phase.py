"""Phases of training: what a batch is changed to, what its loss is, and how the members are validated.

Every run begins with the phase `base`, in which each member is trained by itself. Strategies add further phases, which
continue with the weights of the phase before.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum._internal.seeds import torch_generator
from ecgquorum.cohorts import Batch, Cohort
from ecgquorum.errors import MemberError
from ecgquorum.members import count_features, forward_with_features, freeze
from ecgquorum.parallel import distributed
from ecgquorum.parallel.batch_layers import shard_network
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import TrainingRecipe
from ecgquorum.training.batches import make_training_batches, prefetch
from ecgquorum.training.step import EpochStats, Step
from ecgquorum.training.validation import Evaluation, Tally

if TYPE_CHECKING:
    from ecgquorum.training.strategies import Strategy

_TUNE_BATCH = 64


class Phase:
    """A round of training; subclass it and return it from `Strategy.after_training`.

    The usual subclass overrides `change_batch`. One with losses of its own overrides `losses` and `validate`.

    name:       in histories and job identities; unique among the phases of a run
    joint:      whether all members are trained together, as one job; else one after another, a job each
    parameters: all that decides what the phase does, as JSON values; a job is known by them
    """

    def __init__(
        self,
        name: str,
        epochs: int,
        learning_rate: float | None = None,
        *,
        joint: bool = False,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.epochs, self.learning_rate, self.joint = name, epochs, learning_rate, joint
        self.parameters = {"epochs": epochs, "learning_rate": learning_rate} | (parameters or {})

    def begin_epoch(self, context: "PhaseContext", epoch: int) -> None:
        """Prepare for an epoch."""

    def change_batch(self, step: Step) -> Batch:
        """Return the recordings to train on instead of `step.batch`."""
        return step.batch

    def change_tune_batch(self, step: Step) -> Batch:
        """Return the recordings to validate on instead of `step.batch`; `step.member` is not being trained."""
        return step.batch

    def losses(self, context: "PhaseContext", batch: Batch, indices: np.ndarray) -> Iterator[Tensor]:
        """Yield the terms of the loss of a batch; the gradient of each is computed before the next term.

        batch:   the whole batch, on the CPU; each term is this process's share of it, as `context.loss` returns it
        indices: of its recordings in the cohort
        """
        for number in range(len(context.members)):
            step = context.step(number, batch, indices)
            with context.autocast():
                changed = self.change_batch(step)
            yield context.loss(step.with_batch(changed))

    def validate(self, context: "PhaseContext") -> Evaluation:
        """Evaluate the members on the tune part; the epoch with the best result is kept."""
        tally = Tally()
        for batch in context.tune_batches():
            for number, member in enumerate(context.members):
                step = context.step(number, batch)
                tally.add(member, self.change_tune_batch(step), len(batch.label))
        return tally.result()


class BasePhase(Phase):
    """The first training of each member, on recordings as the strategy changes them."""

    def __init__(self, options: TrainingRecipe, strategy: "Strategy") -> None:
        super().__init__("base", options.epochs, options.learning_rate)
        self._strategy = strategy

    def change_batch(self, step: Step) -> Batch:
        """Return the batch as the strategy changes it."""
        return self._strategy.change_batch(step)


@dataclass
class PhaseContext:
    """Members in training, and everything that a phase works with.

    members: networks in training · indices: their numbers in the ensemble
    earlier: for each of them, the earlier members: networks, which see every batch before anything attacks it, or
             where batches are not augmented, stored features, (train recording, feature) each
    stream:  names the random generators
    """

    members: Sequence[nn.Module]
    indices: Sequence[int]
    phase: str
    cohort: Cohort
    spec: InputSpec
    options: TrainingRecipe
    strategy: "Strategy"
    earlier: Sequence[Sequence[Tensor | nn.Module]]
    device: torch.device
    seed: int
    stream: tuple[str | int, ...]
    epoch: int = 0
    stats: EpochStats = field(default_factory=EpochStats)
    generator: torch.Generator = field(default_factory=torch.Generator)

    def __post_init__(self) -> None:
        self.network = nn.ModuleList(self.members)
        train = self.cohort.part("train")
        self._row_of = np.full(len(self.cohort), -1)
        self._row_of[train] = np.arange(len(train))

    def begin_epoch(self, epoch: int) -> None:
        """Set the epoch's random generator."""
        self.epoch = epoch
        self.generator = self.make_generator("epoch", epoch, "loss")

    def make_generator(self, *names: str | int) -> torch.Generator:
        """Return a new random generator of this phase."""
        return torch_generator(self.seed, *self.stream, *names)

    def batches(self, epoch: int, *names: str | int) -> Iterator[tuple[Batch, np.ndarray]]:
        """Return the batches of an epoch with the indices of their recordings; other names: in another order."""
        stream = (*self.stream, *names)
        made = make_training_batches(self.cohort, self.spec, self.options, seed=self.seed, stream=stream, epoch=epoch)
        return prefetch(made, pinned=self.device.type == "cuda")

    def tune_batches(self) -> Iterator[Batch]:
        """Return the tune part in whole windows."""
        indices = self.cohort.part("tune")
        for start in range(0, len(indices), _TUNE_BATCH):
            yield self.cohort.batch(indices[start : start + _TUNE_BATCH], self.spec)

    def own_rows(self, batch: Batch) -> Batch:
        """Return this process's recordings of a whole batch, on the device."""
        return batch.of(distributed.shard_batch(len(batch.label)).rows()).to(self.device)

    def step(self, number: int, batch: Batch, indices: np.ndarray | None = None, changed: Batch | None = None) -> Step:
        """Return the step of member `number` of this phase on a whole batch.

        indices: of its recordings, where outputs of earlier members are needed
        changed: this process's rows of the batch, if they were changed already
        """
        n_records = len(batch.label)
        share = distributed.shard_batch(n_records)
        own = self.own_rows(batch)
        earlier, earlier_logits = self._earlier_outputs(number, own, indices, share)
        return Step(
            self.members[number],
            self.indices[number],
            self.phase,
            self.epoch,
            own if changed is None else changed,
            torch.arange(n_records, device=self.device)[share.rows()],
            n_records,
            earlier,
            earlier_logits,
            [] if indices is None else [one for one in self.earlier[number] if isinstance(one, nn.Module)],
            self.generator,
            share,
            self.stats,
        )

    def loss(self, step: Step) -> Tensor:
        """Return the cross-entropy of the step's batch and the strategy's terms, as this process's share of the sum."""
        dtype = step.batch.signal.dtype
        with shard_network(step.member, step.share), self.autocast():
            if self._has_features:
                logits, features = forward_with_features(step.member, step.batch.signal)
            else:
                logits, features = step.member(step.batch.signal), step.features
        logits, features = logits.to(dtype), features.to(dtype)
        step = replace(step, logits=logits, features=features)
        loss = F.cross_entropy(logits, step.batch.label, label_smoothing=self.options.label_smoothing)
        return (loss + self.strategy.loss_terms(step)) * step.share.weight

    def autocast(self) -> torch.autocast:
        """Return the context in which networks compute in the recipe's precision."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.precision == "bfloat16")

    @cached_property
    def _has_features(self) -> bool:
        """Whether features of the members can be read; without them, strategies that need none still work."""
        parameter = next(self.network.parameters())
        example = self.cohort.batch([0], self.spec).signal.to(parameter)
        try:
            return bool(count_features(self.members[0], example))
        except MemberError:
            return False

    def _earlier_outputs(
        self, number: int, own: Batch, indices: np.ndarray | None, share: distributed.Share
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return features and logits of the earlier members on the whole batch; of stored ones, features alone.

        own: this process's rows of the batch
        """
        features: list[Tensor] = []
        logits: list[Tensor] = []
        if indices is None or not self.earlier[number]:
            return features, logits
        rows = torch.from_numpy(self._row_of[indices])
        started = time.perf_counter()
        for member in self.earlier[number]:
            if isinstance(member, Tensor):
                features.append(member[rows].to(self.device))
                continue
            with freeze(member), torch.no_grad(), self.autocast():
                if self._has_features:
                    outputs, embedded = forward_with_features(member, own.signal)
                    features.append(share.gather(embedded.to(own.signal.dtype)))
                else:
                    outputs = member(own.signal)
            logits.append(share.gather(outputs.to(own.signal.dtype)))
        if logits:
            self.stats.add_to_sum("earlier_seconds", time.perf_counter() - started)
        return features, logits
