"""Batches of recordings as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ecgquorum.preprocessing.input_spec import Signal, pad_or_cut


class Batch(NamedTuple):
    """signal (batch, lead, time) float32 · valid (batch, 1, time) bool, False on padding · label (batch,) int64."""

    signal: Tensor
    valid: Tensor
    label: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The batch on another device."""
        return Batch(*(part.to(device, non_blocking=True) for part in self))

    def of(self, rows: slice | Tensor) -> "Batch":
        """A selection of its recordings, in the given order."""
        return Batch(*(part[rows.to(part.device) if isinstance(rows, Tensor) else rows] for part in self))


def make_batch(signals: Sequence[Signal], n_window: int, labels: Sequence[int] | None = None) -> Batch:
    """Pad or cut prepared signals to one window of `n_window` samples; without labels, all are -1."""
    signal = np.zeros((len(signals), len(signals[0]), n_window), dtype=np.float32)
    valid = np.zeros((len(signals), 1, n_window), dtype=bool)
    for row, prepared in enumerate(signals):
        padded, inside = pad_or_cut(prepared, n_window)
        signal[row] = padded
        valid[row, :, inside] = True
    label = torch.tensor([-1] * len(signals) if labels is None else list(labels))
    return Batch(torch.from_numpy(signal), torch.from_numpy(valid), label)
