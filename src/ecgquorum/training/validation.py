"""Loss and accuracy of members on the tune part, which choose the checkpoint."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ecgquorum.cohorts import Batch
from ecgquorum.members import freeze
from ecgquorum.parallel import distributed


@dataclass(frozen=True)
class Evaluation:
    """Cross-entropy and accuracy on the tune part."""

    loss: float
    accuracy: float


class Tally:
    """Cross-entropy and right answers in evaluation mode, summed over recordings and in the end over processes."""

    def __init__(self) -> None:
        self._loss = self._right = self._seen = 0.0

    def add(self, member: nn.Module, batch: Batch, n_records: int) -> None:
        """Add this process's rows of a batch of `n_records` recordings."""
        copies = distributed.shard_batch(n_records).copies
        with freeze(member), torch.inference_mode():
            logits = member(batch.signal)
            self._loss += F.cross_entropy(logits, batch.label, reduction="sum").item() / copies
            self._right += int((logits.argmax(dim=1) == batch.label).sum()) / copies
            self._seen += len(batch.label) / copies

    def result(self) -> Evaluation:
        """Return loss and accuracy over the recordings of all processes."""
        loss, right, seen = distributed.totals(self._loss, self._right, self._seen)
        return Evaluation(loss / seen, right / seen)
