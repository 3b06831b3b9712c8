"""The phases of a strategy: what is trained together, on what loss, and how it is judged."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum._internal.seeds import torch_generator
from ecgquorum.attacks import PGD, random_perturbation
from ecgquorum.cohorts import Batch, Cohort
from ecgquorum.losses import distill_features
from ecgquorum.members import forward_with_features, freeze, norm_layers
from ecgquorum.parallel import distributed
from ecgquorum.parallel.batch_layers import shard_network
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import AdversarialRecipe, DvergeRecipe, Recipe, TrainingRecipe
from ecgquorum.training.batches import make_training_batches, prefetch
from ecgquorum.training.decorrelation import Decorrelation

_EVALUATION_BATCH = 64


@dataclass(frozen=True)
class Evaluation:
    """How members do on the tune part."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class PhaseContext:
    """What every phase works with; `stream` names its random generators."""

    cohort: Cohort
    spec: InputSpec
    recipe: Recipe
    plan: TrainingRecipe
    device: torch.device
    stream: tuple[str | int, ...]

    def generator(self, *names: str | int) -> torch.Generator:
        """A generator of this phase."""
        return torch_generator(self.recipe.seed, *self.stream, *names)

    def batches(self, epoch: int, *names: str | int) -> Iterator[tuple[Batch, np.ndarray]]:
        """The batches of an epoch with the indices of their recordings."""
        stream = (*self.stream, *names)
        made = make_training_batches(
            self.cohort, self.spec, self.plan, seed=self.recipe.seed, stream=stream, epoch=epoch
        )
        return prefetch(made, pinned=self.device.type == "cuda")

    def tune_batches(self) -> Iterator[Batch]:
        """The tune part in whole windows."""
        indices = self.cohort.part("tune")
        for start in range(0, len(indices), _EVALUATION_BATCH):
            yield self.cohort.batch(indices[start : start + _EVALUATION_BATCH], self.spec)

    def mine(self, batch: Batch) -> Batch:
        """This rank's recordings of a whole batch, on the device."""
        return batch.of(distributed.shard_batch(len(batch.label)).rows()).to(self.device)


class Phase(ABC):
    """Members in training, their loss and their judge."""

    def __init__(self, members: list[nn.Module], setting: PhaseContext, decorrelations: list[Decorrelation]) -> None:
        self.network = nn.ModuleList(members)
        self.members = members
        self.setting = setting
        self._decorrelations = decorrelations
        self._generator = setting.generator()

    def begin_epoch(self, epoch: int) -> None:
        """Draw anew what the epoch draws from."""
        self._generator = self.setting.generator("epoch", epoch, "loss")

    @abstractmethod
    def losses(self, batch: Batch, indices: np.ndarray) -> Iterator[Tensor]:
        """What to lower on this batch of these recordings, as terms of a sum, to be gone back through one by one.

        batch: the whole one, on the CPU; where there are several ranks, each term is this rank's share of it
        """

    @abstractmethod
    def judged(self) -> Evaluation:
        """How the members do on the tune part, by what this phase trains for."""

    def taken(self) -> dict[str, float]:
        """What the epoch's history says of the decorrelation term."""
        rows = [term.taken() for term in self._decorrelations]
        return {key: float(np.sum([row[key] for row in rows])) for key in rows[0]}

    def _fitted(self, member: int, batch: Batch, indices: np.ndarray) -> Tensor:
        """Cross-entropy of a member on the batch, and its decorrelation term.

        batch: this rank's rows of the whole batch, whose recordings `indices` are
        """
        network, share = self.members[member], distributed.shard_batch(len(indices))
        with shard_network(network, share):
            logits, features = forward_with_features(network, batch.signal)
        smoothing = self.setting.plan.label_smoothing
        loss = F.cross_entropy(logits, batch.label, label_smoothing=smoothing) * share.weight
        return loss + self._decorrelations[member](features, indices, self._generator)


@final
class BasePhase(Phase):
    """One member on recordings as they are, or on some that are attacked by a single step."""

    def losses(self, batch: Batch, indices: np.ndarray) -> Iterator[Tensor]:
        """Cross-entropy, and the decorrelation term."""
        plan = self.setting.plan
        mine = self.setting.mine(batch)
        if plan.attack_epsilon is not None:
            n_attacked = max(1, round(plan.attacked * len(batch.label)))
            mine = self._partly_attacked(mine, batch, n_attacked, plan.attack_epsilon)
        yield self._fitted(0, mine, indices)

    def _partly_attacked(self, mine: Batch, batch: Batch, n_attacked: int, epsilon: float) -> Batch:
        """The first recordings of the whole batch, which are in random order, each moved by up to a bound of its own.

        One step of the steepest ascent from a random change, a quarter longer than the bound: a single step from the
        recording itself would teach members to hide their gradients (Wong, Rice & Kolter 2020).
        """
        bounds = torch.rand(n_attacked, generator=self._generator) * epsilon
        first = batch.of(slice(n_attacked))
        start = random_perturbation(first.signal, first.valid, bounds[:, None, None], "linf", self._generator)
        rows = distributed.shard_batch(len(batch.label)).rows(n_attacked)
        some = batch.of(rows).to(self.setting.device)
        if len(some.label) == 0:
            return mine
        attack = PGD(bounds[rows], n_steps=1, step=1.25, start=start[rows].to(self.setting.device))
        moved = attack(self.members[0], some.signal, some.label, some.valid)
        return mine._replace(signal=torch.cat([moved, mine.signal[len(moved) :]]))

    def judged(self) -> Evaluation:
        """On the tune part as it is."""
        tally = _Tally()
        for batch in self.setting.tune_batches():
            tally.count(self.members[0], self.setting.mine(batch), len(batch.label))
        return tally.evaluation()


@final
class AdversarialPhase(Phase):
    """One member on recordings attacked against itself, as it is at that moment."""

    @property
    def _attack(self) -> PGD:
        part = self.setting.recipe.adversarial
        return PGD(_bound(part), n_steps=part.steps, step=part.step)

    def _attacked(self, batch: Batch) -> Batch:
        mine = self.setting.mine(batch)
        return mine._replace(signal=self._attack(self.members[0], mine.signal, mine.label, mine.valid))

    def losses(self, batch: Batch, indices: np.ndarray) -> Iterator[Tensor]:
        """Cross-entropy on the attacked batch, and the decorrelation term of its features."""
        yield self._fitted(0, self._attacked(batch), indices)

    def judged(self) -> Evaluation:
        """On the tune part under the training attack."""
        tally = _Tally()
        for batch in self.setting.tune_batches():
            tally.count(self.members[0], self._attacked(batch), len(batch.label))
        return tally.evaluation()


@final
class DvergePhase(Phase):
    """All members together, each on what the others can be made to take for something else.

    For a block l drawn for the batch and each member i, a source is changed within epsilon until member i's activation
    at block l resembles that of an unrelated target; the other members learn to still see the source in it.
    """

    def begin_epoch(self, epoch: int) -> None:
        """Draw a second, independent order of the recordings: the sources."""
        super().begin_epoch(epoch)
        self._sources = self.setting.batches(epoch, "source")

    def losses(self, batch: Batch, indices: np.ndarray) -> Iterator[Tensor]:  # noqa: ARG002 (those of the sources count)
        """For each member, the mean of its losses on what was distilled from each of the others."""
        source, source_indices = next(self._sources)
        part = self.setting.recipe.dverge
        source, source_indices = _paired(source, source_indices, batch, part, self._generator)
        changed = self._distilled(source, batch, self._generator)
        for j in range(len(self.members)):
            for i in range(len(self.members)):
                if i != j:
                    yield self._fitted(j, changed[i], source_indices) / (len(self.members) - 1)

    def judged(self) -> Evaluation:
        """Members on tune recordings distilled from the others, with the same blocks and targets every time."""
        generator = self.setting.generator("judge")
        tally = _Tally()
        for source in self.setting.tune_batches():
            order = torch.randperm(len(source.label), generator=generator)
            changed = self._distilled(source, source.of(order), generator)
            for j, member in enumerate(self.members):
                for i, attacked in enumerate(changed):
                    if i != j:
                        tally.count(member, attacked, len(source.label))
        return tally.evaluation()

    def _distilled(self, source: Batch, target: Batch, generator: torch.Generator) -> list[Batch]:
        """This rank's rows of the source changed for each member, all at the same batch-norm layer."""
        layer = int(torch.randint(len(norm_layers(self.members[0])), (), generator=generator))
        part = self.setting.recipe.dverge
        source, target = self.setting.mine(source), self.setting.mine(target)
        return [distilled(member, source, target, layer, part) for member in self.members]


def _bound(part: AdversarialRecipe | DvergeRecipe) -> float:
    if part.epsilon is None:
        raise ValueError("a part that stands outside of a recipe needs an epsilon")
    return part.epsilon


def distilled(member: nn.Module, source: Batch, target: Batch, layer: int, part: DvergeRecipe) -> Batch:
    """The source within epsilon of itself, moved towards the target's activation after the given batch norm."""
    moved = distill_features(
        member,
        source.signal,
        target.signal,
        layer,
        epsilon=_bound(part),
        valid=source.valid,
        n_steps=part.steps,
        step=part.step,
    )
    return source._replace(signal=moved)


def _paired(
    source: Batch, indices: np.ndarray, target: Batch, part: DvergeRecipe, generator: torch.Generator
) -> tuple[Batch, np.ndarray]:
    """The sources in their own order, or, where it is wanted, each of another class than its target if there is one."""
    if not part.different_classes:
        return source, indices
    differs = (source.label[None] != target.label[:, None]).double()
    differs[differs.sum(dim=1) == 0] = 1.0
    order = torch.multinomial(differs, 1, generator=generator)[:, 0]
    return source.of(order), indices[order.numpy()]


class _Tally:
    """Cross-entropy and right answers in evaluation mode, summed over recordings, in the end over ranks."""

    def __init__(self) -> None:
        self._loss = self._right = self._seen = 0.0

    def count(self, member: nn.Module, mine: Batch, n_records: int) -> None:
        """Count this rank's rows of a batch of so many recordings."""
        copies = distributed.shard_batch(n_records).copies
        with freeze(member), torch.inference_mode():
            logits = member(mine.signal)
            self._loss += F.cross_entropy(logits, mine.label, reduction="sum").item() / copies
            self._right += int((logits.argmax(dim=1) == mine.label).sum()) / copies
            self._seen += len(mine.label) / copies

    def evaluation(self) -> Evaluation:
        """How all ranks' recordings were answered."""
        loss, right, seen = distributed.totals(self._loss, self._right, self._seen)
        return Evaluation(loss / seen, right / seen)
