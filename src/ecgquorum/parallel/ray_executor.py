"""Tasks on a Ray cluster."""

import pickle
import socket
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ecgquorum.errors import ClusterError, EcgQuorumError
from ecgquorum.parallel.executor import Executor, Lost, Outcome, Raised
from ecgquorum.parallel.ray_connection import connected, first_line

_LOOK_S = 10.0
"""How often to look whether machines have joined."""


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What Ray calls, and where it keeps what all tasks have in common; in a list, so that Ray does not unpack it."""

    remote: Any
    kept: list[Any]


class RayExecutor(Executor):
    """As many tasks at once as the cluster has room for; machines may come and go.

    address:   as for `connected`
    wants_gpu: each task gets a GPU where the cluster has any
    workers:   how many tasks at once a cluster has room for that is started for this
    """

    def __init__(self, address: str | None, threads: int, *, wants_gpu: bool = False, workers: int = 1) -> None:
        self.threads = threads
        self._has_told = False
        self._open = ExitStack()
        self._ray = self._open.enter_context(connected(address, threads * workers))
        self._gpus = int(wants_gpu and "GPU" in self._ray.cluster_resources())
        try:
            self._check_room()
        except ClusterError:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster; one that was started for this ends."""
        self._open.close()

    @property
    def room(self) -> int:
        """What fits in at the moment and one more, so that a cluster that can grow knows that it should."""
        return self._fitting() + 1

    def _fitting(self) -> int:
        there = self._ray.cluster_resources()
        room = there.get("CPU", 0) / self.threads
        return int(min(room, there.get("GPU", 0) / self._gpus) if self._gpus else room)

    def _check_room(self) -> None:
        largest = max((node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"]), default=0)
        if 0 < largest < self.threads:  # one without any may be about to grow
            raise ClusterError(
                f"expected a machine with {self.threads} free cores in the cluster, found at most {largest:g}; "
                "give --threads fewer"
            )

    def _prepared(self, function: Callable[..., Any], common: tuple[Any, ...]) -> _Prepared:
        remote = self._ray.remote(_done)
        remote = remote.options(num_cpus=self.threads, num_gpus=self._gpus, max_retries=0, name=function.__name__)
        return _Prepared(remote, [self._ray.put(pickle.dumps((function, common)))])

    def _begun(self, prepared: _Prepared, item: Any) -> Hashable:
        handle: Hashable = prepared.remote.remote(prepared.kept, item, self.threads, _versions())
        return handle

    def _finished(self, handles: Iterable[Hashable]) -> list[tuple[Hashable, Outcome]]:
        ready, _ = self._ray.wait(list(handles), num_returns=1, timeout=_LOOK_S)
        if not ready and not self._has_told and not self._fitting() and self.told:
            self._has_told = True
            self.told(
                f"waiting: no machine of the cluster has {self.threads} cores{' and a GPU' * self._gpus} just now"
            )
        return [(handle, self._outcome(handle)) for handle in ready]

    def _outcome(self, handle: Hashable) -> Outcome:
        raised = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except raised.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, ImportError):
                cause = ClusterError(f"on a machine of the cluster: {cause}; install the same everywhere")
            if not isinstance(cause, Exception):
                return Raised(error)
            cause.add_note(str(error))
            return Raised(cause)
        except (raised.NodeDiedError, raised.ObjectLostError) as error:
            return Lost(first_line(error), with_machine=True)
        except raised.RayError as error:
            return Lost(first_line(error))

    def _given_up(self, handles: Iterable[Hashable]) -> None:
        if self._ray.is_initialized():  # else Ray would start again, to cancel
            for handle in handles:
                self._ray.cancel(handle, force=True)


_known: dict[str, Any] = {}
"""What this process has unpacked last, by Ray's name for it."""


def _versions() -> str:
    """What results depend on."""
    return f"ecgquorum {version('ecgquorum')} with PyTorch {version('torch')}"


def _done(kept: list[Any], item: Any, threads: int, wanted: str) -> Any:
    """One task, on whatever machine this is."""
    import ray
    import torch

    if (found := _versions()) != wanted:
        raise ClusterError(f"{socket.gethostname()}: expected {wanted}, found {found}; install the same everywhere")
    torch.set_num_threads(threads)
    name = kept[0].hex()
    if name not in _known:
        _known.clear()
        _known[name] = _unpacked(ray.get(kept[0]))
    function, common = _known[name]
    return function(*common, item)


def _unpacked(pickled: bytes) -> Any:
    try:
        return pickle.loads(pickled)  # noqa: S301 (from the command that gave the work)
    except (EcgQuorumError, OSError) as error:
        raise ClusterError(
            f"{socket.gethostname()}: {error}; every machine of the cluster needs the same files at the same place"
        ) from error
    except ImportError as error:
        raise ClusterError(f"{socket.gethostname()}: {error}; install the same on every machine") from error
