"""Processes that train one member together: who they are, which rows of a batch are whose, and what they add up.

Every rank makes the same whole batches from the same seed and works on its own rows. Whatever is random is drawn for
the whole batch, and whatever depends on the whole batch is summed over the ranks, so that the result is that of a
single process up to rounding. A single process is the only rank there is: everything here then gives back what it was
given.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from ecgquorum.errors import RankLostError, TrainingError

PATIENCE = timedelta(days=1)
"""How long ranks wait for each other: the first one measures the ensemble at the end while the others have nothing to
do. One that dies is noticed at once, by its closed connections or by whoever started it."""

_STARTED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_store: Any = None  # where ranks that torchrun has started leave each other notes
_n_joined = 0


@contextmanager
def joined() -> Iterator[None]:
    """Be one of the ranks that torchrun has started, if it has; a process group that is there already is used."""
    global _store, _n_joined
    if distributed.is_initialized() or any(name not in os.environ for name in _STARTED):
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    try:
        store, rank, n_ranks = next(rendezvous("env://"))
        _n_joined += 1
        _store = PrefixStore(f"ecgquorum/{_n_joined}", store)  # notes of an earlier time would mislead
        # no backend is named: gloo carries what is on the CPU, and NCCL what is on a GPU
        distributed.init_process_group(store=_store, rank=rank, world_size=n_ranks, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"expected to meet the other ranks, found: {str(error).splitlines()[0]}") from error
    yield
    distributed.destroy_process_group()  # not after an error: the others may never come to it
    _store = None


def rank() -> int:
    """This process's number among the ranks, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def n_ranks() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this is the rank that writes files and speaks to the user."""
    return rank() == 0


def is_first_to_fail() -> bool:
    """Whether no other rank has asked this before: those that fail alike, or because one did, need not all say so."""
    if _store is None:
        return True
    try:
        return bool(_store.add("failed", 1) == 1)
    except RuntimeError:  # who kept the store is gone
        return True


@dataclass(frozen=True)
class Share:
    """What this rank does of a batch: every n-th recording, from the rank's own number on.

    n_records: of the whole batch
    n_ranks:   among how many the recordings are dealt
    copies:    how many ranks do the same: 1, or all of them where a batch has fewer recordings than there are ranks
    """

    n_records: int
    rank: int
    n_ranks: int
    copies: int

    def rows(self, n_first: int | None = None) -> slice:
        """This rank's rows of the batch, or of its first ones."""
        return slice(self.rank, n_first, self.n_ranks)

    @property
    def weight(self) -> float:
        """This rank's recordings as a share of all."""
        return len(range(self.n_records)[self.rows()]) / self.n_records

    def gathered(self, mine: Tensor) -> Tensor:
        """The whole batch (record, ...), from every rank's rows; without their gradients."""
        if self.n_ranks == 1:
            return mine.detach()
        everyone = mine.new_zeros(self.n_records, *mine.shape[1:])
        everyone[self.rows()] = mine.detach()
        return _over_ranks(everyone)

    def stacked(self, mine: Tensor) -> Tensor:
        """(rank, ...): what each of the ranks among whom recordings are dealt has."""
        everyone = mine.new_zeros(self.n_ranks, *mine.shape)
        everyone[self.rank] = mine
        return _over_ranks(everyone) if self.n_ranks > 1 else everyone

    def add_up(self, parts: Sequence[Tensor]) -> None:
        """Put each tensor's sum over the batch's recordings in its place, in one message."""
        if self.n_ranks * self.copies == 1:
            return
        flat = _over_ranks(torch.cat([part.reshape(-1) for part in parts])) / self.copies
        for part, summed in zip(parts, torch.split_with_sizes(flat, [p.numel() for p in parts]), strict=True):
            part.copy_(summed.view_as(part))


_current: Share | None = None


def shard_batch(n_records: int) -> Share:
    """This rank's share of a batch."""
    if n_records < n_ranks():
        return Share(n_records, 0, 1, n_ranks())
    return Share(n_records, rank(), n_ranks(), 1)


@contextmanager
def sharing(share: Share) -> Iterator[None]:
    """Let networks in training know, while the block runs, that they see a share of a batch and not all of it."""
    global _current
    _current = share
    try:
        yield
    finally:
        _current = None


def shared() -> Share | None:
    """The share that a network in training sees, where others see the rest of the batch."""
    return _current if _current is not None and _current.n_ranks > 1 else None


def totals(*numbers: float) -> list[float]:
    """Each number summed over all ranks."""
    if n_ranks() == 1:
        return list(numbers)
    summed: list[float] = _over_ranks(torch.tensor(numbers, dtype=torch.float64)).tolist()
    return summed


def widest(first: int, last: int) -> tuple[int, int]:
    """The smallest first and the largest last of all ranks."""
    if n_ranks() == 1:
        return first, last
    before, after = _over_ranks(torch.tensor([-first, last]), distributed.ReduceOp.MAX).tolist()
    return -before, after


def check_alike(what: str, found: str) -> None:
    """Refuse to go on where ranks have found different things."""
    digest = int.from_bytes(hashlib.sha256(found.encode()).digest()[:7], "big")
    if len(set(widest(digest, digest))) > 1:
        raise TrainingError(
            f"expected every rank to have the same {what}, found different ones; give all of them the same arguments "
            "and files"
        )


def from_first(make: Callable[[], Tensor], shape: tuple[int, ...]) -> Tensor:
    """What the first rank makes, a float32 tensor of the given shape on the CPU, on every rank."""
    if n_ranks() == 1:
        return make()
    made = make().clone() if is_first() else torch.empty(shape)  # a clone may be written to, whatever it is one of
    with _others_there():
        distributed.broadcast(made, 0)
    return made


def wait() -> None:
    """Go on when all ranks are here."""
    totals(0.0)


def _over_ranks(tensor: Tensor, how: distributed.ReduceOp.RedOpType = distributed.ReduceOp.SUM) -> Tensor:
    with _others_there():
        distributed.all_reduce(tensor, how)
    return tensor


@contextmanager
def _others_there() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankLostError(
            f"rank {rank()}: expected the other ranks to go on, found that one has stopped; it may have been killed, "
            "or out of memory; finished epochs are kept, go on with --resume"
        ) from error
