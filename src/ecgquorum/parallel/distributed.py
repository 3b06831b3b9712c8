"""Data-parallel training over ranks (`torch.distributed`): shard a batch, all-reduce gradients and statistics.

Every rank makes the same whole batches from the same seed and works on its own rows. Random numbers are drawn for the
whole batch, and whatever depends on the whole batch is reduced over the ranks, so that the result is that of a single
process up to rounding. With a single process every function here returns its input.
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

TIMEOUT = timedelta(days=1)
"""How long ranks wait for each other: the others wait while the first one evaluates the ensemble at the end. The loss
of a rank is noticed at once, by its closed connections or by the launcher."""

_LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_store: Any = None  # key-value store of ranks that torchrun has started
_n_joins = 0


@contextmanager
def join_ranks() -> Iterator[None]:
    """Join the process group if torchrun has started this process; an existing process group is used as it is."""
    global _store, _n_joins
    if distributed.is_initialized() or any(name not in os.environ for name in _LAUNCHER_VARIABLES):
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    try:
        store, rank, n_ranks = next(rendezvous("env://"))
        _n_joins += 1
        _store = PrefixStore(f"ecgquorum/{_n_joins}", store)  # keys of an earlier process group must not be read
        # no backend is named: gloo carries what is on the CPU, and NCCL what is on a GPU
        distributed.init_process_group(store=_store, rank=rank, world_size=n_ranks, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"this rank could not join the process group at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    yield
    distributed.destroy_process_group()  # not after an error: the other ranks may never reach this line
    _store = None


def rank() -> int:
    """The number of this process among the ranks, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def n_ranks() -> int:
    """The number of processes that train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this is rank 0, which writes files and prints."""
    return rank() == 0


def is_first_to_fail() -> bool:
    """Whether no other rank has called this before: an error of all ranks is printed once."""
    if _store is None:
        return True
    try:
        return bool(_store.add("failed", 1) == 1)
    except RuntimeError:  # the process that held the store is gone
        return True


@dataclass(frozen=True)
class Share:
    """This rank's rows of a batch: every n-th recording, from the rank's own number on.

    n_records: of the whole batch
    n_ranks:   how many ranks have different rows
    copies:    how many ranks have the same rows: 1, or all of them where a batch has fewer recordings than ranks
    """

    n_records: int
    rank: int
    n_ranks: int
    copies: int

    def rows(self, n_first: int | None = None) -> slice:
        """This rank's rows of the batch, or of its first `n_first` recordings."""
        return slice(self.rank, n_first, self.n_ranks)

    @property
    def weight(self) -> float:
        """This rank's recordings as a fraction of the batch."""
        return len(range(self.n_records)[self.rows()]) / self.n_records

    def gather(self, mine: Tensor) -> Tensor:
        """The whole batch (record, ...) from the rows of all ranks, detached."""
        if self.n_ranks == 1:
            return mine.detach()
        everyone = mine.new_zeros(self.n_records, *mine.shape[1:])
        everyone[self.rows()] = mine.detach()
        return _all_reduce(everyone)

    def stack(self, mine: Tensor) -> Tensor:
        """(rank, ...): the tensors of all ranks that have different rows."""
        everyone = mine.new_zeros(self.n_ranks, *mine.shape)
        everyone[self.rank] = mine
        return _all_reduce(everyone) if self.n_ranks > 1 else everyone

    def add_up(self, parts: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over the batch's recordings, in one message."""
        if self.n_ranks * self.copies == 1:
            return
        flat = _all_reduce(torch.cat([part.reshape(-1) for part in parts])) / self.copies
        for part, summed in zip(parts, torch.split_with_sizes(flat, [p.numel() for p in parts]), strict=True):
            part.copy_(summed.view_as(part))


def shard_batch(n_records: int) -> Share:
    """This rank's share of a batch."""
    if n_records < n_ranks():
        return Share(n_records, 0, 1, n_ranks())
    return Share(n_records, rank(), n_ranks(), 1)


def totals(*numbers: float) -> list[float]:
    """Each number summed over all ranks."""
    if n_ranks() == 1:
        return list(numbers)
    summed: list[float] = _all_reduce(torch.tensor(numbers, dtype=torch.float64)).tolist()
    return summed


def check_alike(what: str, value: str) -> None:
    """Raise if ranks have different values of `what`."""
    if n_ranks() == 1:
        return
    digest = int.from_bytes(hashlib.sha256(value.encode()).digest()[:7], "big")
    smallest, largest = _all_reduce(torch.tensor([-digest, digest]), distributed.ReduceOp.MAX).tolist()
    if -smallest != largest:
        raise TrainingError(f"ranks have a different {what}; start all of them with the same arguments and files")


def from_first(make: Callable[[], Tensor], shape: tuple[int, ...]) -> Tensor:
    """Broadcast what rank 0 makes, a float32 tensor of the given shape on the CPU."""
    if n_ranks() == 1:
        return make()
    tensor = make().clone() if is_first() else torch.empty(shape)  # a clone: broadcast may write to it
    with _raise_rank_lost():
        distributed.broadcast(tensor, 0)
    return tensor


def wait() -> None:
    """Wait until all ranks are here."""
    totals(0.0)


def _all_reduce(tensor: Tensor, operation: distributed.ReduceOp.RedOpType = distributed.ReduceOp.SUM) -> Tensor:
    with _raise_rank_lost():
        distributed.all_reduce(tensor, operation)
    return tensor


@contextmanager
def _raise_rank_lost() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankLostError(
            f"rank {rank()}: another rank has stopped (killed, or out of memory?); finished epochs are kept, continue "
            "with --resume"
        ) from error
