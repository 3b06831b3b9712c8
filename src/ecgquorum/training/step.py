"""One batch in the training of one member, as strategies see it."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from ecgquorum.cohorts import Batch
from ecgquorum.parallel.distributed import Share


class EpochStats:
    """Numbers of an epoch for its line of history: means of values, and sums."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = defaultdict(list)
        self._sums: dict[str, float] = defaultdict(float)

    def add_value(self, name: str, value: float) -> None:
        """Add a value of which the history shows the mean."""
        self._values[name].append(value)

    def add_to_sum(self, name: str, value: float) -> None:
        """Add to a number of which the history shows the sum."""
        self._sums[name] += value

    def pop(self) -> dict[str, float]:
        """Return the epoch's numbers and start again."""
        found = {name: sum(values) / len(values) for name, values in self._values.items()} | self._sums
        self._values.clear()
        self._sums.clear()
        return found


@dataclass(frozen=True)
class Step:
    """One batch for one member, with what hooks of a strategy may use.

    Where several processes train one member together, everything here is about this process's rows of the batch; `draw`
    and `batch_loss` make hooks independent of how many processes there are.

    member:    the network, in training mode
    index:     its number in the ensemble, from 0
    phase:     name of the phase: "base" for the first training
    epoch:     from 0
    batch:     signal (record, lead, time), valid (record, 1, time), label (record,), on the device
    rows:      (record,) their places in the whole batch
    n_records: of the whole batch
    earlier:   the recordings' features of each earlier member, (record, feature) of the whole batch, of the view of
               the recordings that the batch had before anything attacked it; empty unless a strategy sets
               `uses_earlier_members`
    earlier_logits: the same for logits, (record, class); empty unless a strategy sets `uses_earlier_logits`, too
    earlier_members: the earlier members themselves; empty where their features were stored
    generator: source of randomness, the same in every process
    logits:    (record, class) and
    features:  (record, feature) of the batch; both are empty in `change_batch`, which comes before them
    """

    member: nn.Module
    index: int
    phase: str
    epoch: int
    batch: Batch
    rows: Tensor
    n_records: int
    earlier: Sequence[Tensor]
    earlier_logits: Sequence[Tensor]
    earlier_members: Sequence[nn.Module]
    generator: torch.Generator
    share: Share
    stats: EpochStats
    logits: Tensor = field(default_factory=lambda: torch.empty(0))
    features: Tensor = field(default_factory=lambda: torch.empty(0))

    def with_batch(self, batch: Batch) -> "Step":
        """Return the step with another batch."""
        return replace(self, batch=batch)

    def draw(self, sample: Callable[[int, torch.Generator], Tensor]) -> Tensor:
        """Return random numbers for the recordings, drawn for the whole batch by `sample(n_records, generator)`."""
        drawn = sample(self.n_records, self.generator)
        return drawn[self.share.rows()].to(self.batch.signal.device)

    def labels(self) -> Tensor:
        """Return the classes of the whole batch, (record,); every process has to call this."""
        return self.share.gather(self.batch.label)

    def batch_loss(
        self, loss: Callable[[Tensor, Sequence[Tensor]], Tensor], name: str, *, logits: bool = False
    ) -> Tensor | float:
        """Return a loss that depends on the whole batch: `loss(features, earlier)`, a scalar.

        features, earlier: (record, feature) of the whole batch
        logits:            call `loss(logits, earlier_logits)` instead, (record, class) of the whole batch

        A loss without a gradient (of a batch that is too small, say) counts as 0. The history shows the mean of the
        loss, its seconds and how often it was skipped, as `name`, `name_seconds` and `name_skipped`.
        """
        mine, earlier = (self.logits, self.earlier_logits) if logits else (self.features, self.earlier)
        device = mine.device
        started = _synchronized_time(device)
        leaf = self.share.gather(mine).requires_grad_()
        term = loss(leaf, earlier)
        result: Tensor | float = 0.0
        if term.requires_grad:
            # The term's own backward pass runs here, inside the clock. What is returned is linear in the outputs, with
            # the term's value and gradient; each process accounts for its own rows, and for its share of the value.
            (gradient,) = torch.autograd.grad(term, leaf)
            linear = (gradient[self.share.rows()] * mine).sum()
            result = (term.detach() / self.share.n_ranks + linear - linear.detach()) / self.share.weight
            self.stats.add_value(name, term.item())
        self.stats.add_to_sum(f"{name}_skipped", not term.requires_grad)
        self.stats.add_to_sum(f"{name}_seconds", _synchronized_time(device) - started)
        return result


def _synchronized_time(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
