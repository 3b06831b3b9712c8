"""Run tasks on a Ray cluster."""

import pickle
import socket
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ecgquorum.errors import ClusterError, EcgQuorumError
from ecgquorum.parallel.executor import Executor, Lost, Outcome, Raised
from ecgquorum.parallel.ray_connection import connect_ray, first_line

_POLL_S = 10.0
"""How often to check whether machines have joined."""


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The remote function, and the reference to the common arguments; in a list, so that Ray does not resolve it."""

    remote: Any
    common: list[Any]


class RayExecutor(Executor):
    """Runs as many tasks at once as the cluster has cores for; machines may join and leave.

    address:   as for `connect_ray`
    wants_gpu: each task gets a GPU where the cluster has any
    workers:   how many tasks at once a cluster can run that is started by this executor
    """

    def __init__(self, address: str | None, threads: int, *, wants_gpu: bool = False, workers: int = 1) -> None:
        self.threads = threads
        self._has_logged_waiting = False
        self._exit_stack = ExitStack()
        self._ray = self._exit_stack.enter_context(connect_ray(address, threads * workers))
        self._gpus = int(wants_gpu and "GPU" in self._ray.cluster_resources())
        try:
            self._check_cores()
        except ClusterError:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect; a cluster that was started by this executor ends."""
        self._exit_stack.close()

    @property
    def capacity(self) -> int:
        """What fits at the moment plus one, so that an autoscaling cluster sees that it should grow."""
        return self._n_fitting() + 1

    def _n_fitting(self) -> int:
        resources = self._ray.cluster_resources()
        n_tasks = resources.get("CPU", 0) / self.threads
        return int(min(n_tasks, resources.get("GPU", 0) / self._gpus) if self._gpus else n_tasks)

    def _check_cores(self) -> None:
        largest = max((node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"]), default=0)
        if 0 < largest < self.threads:  # a cluster without any may be about to grow
            raise ClusterError(
                f"--threads {self.threads}: no machine of the cluster has so many cores (at most {largest:g}); give "
                "--threads fewer"
            )

    def _prepare(self, function: Callable[..., Any], common: tuple[Any, ...]) -> _Prepared:
        remote = self._ray.remote(_run_task)
        remote = remote.options(num_cpus=self.threads, num_gpus=self._gpus, max_retries=0, name=function.__name__)
        return _Prepared(remote, [self._ray.put(pickle.dumps((function, common)))])

    def _submit(self, prepared: _Prepared, item: Any) -> Hashable:
        handle: Hashable = prepared.remote.remote(prepared.common, item, self.threads, _versions())
        return handle

    def _wait(self, handles: Iterable[Hashable]) -> list[tuple[Hashable, Outcome]]:
        ready, _ = self._ray.wait(list(handles), num_returns=1, timeout=_POLL_S)
        if not ready and not self._has_logged_waiting and not self._n_fitting():
            self._has_logged_waiting = True
            self.progress.log(
                f"waiting: no machine of the cluster has {self.threads} cores{' and a GPU' * self._gpus} at the moment"
            )
        return [(handle, self._outcome(handle)) for handle in ready]

    def _outcome(self, handle: Hashable) -> Outcome:
        errors = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, ImportError):
                cause = ClusterError(
                    f"on a machine of the cluster: {cause}; install the same versions on every machine"
                )
            if not isinstance(cause, Exception):
                return Raised(error)
            cause.add_note(str(error))
            return Raised(cause)
        except (errors.NodeDiedError, errors.ObjectLostError) as error:
            return Lost(first_line(error), with_machine=True)
        except errors.RayError as error:
            return Lost(first_line(error))

    def _cancel(self, handles: Iterable[Hashable]) -> None:
        if self._ray.is_initialized():  # else Ray would start again, to cancel
            for handle in handles:
                self._ray.cancel(handle, force=True)


_last_work: dict[str, Any] = {}
"""The function and common arguments that this process has unpickled last, by Ray's name for them."""


def _versions() -> str:
    """The versions that results depend on."""
    return f"ecgquorum {version('ecgquorum')} with PyTorch {version('torch')}"


def _run_task(reference: list[Any], item: Any, threads: int, wanted: str) -> Any:
    """Run one task on a machine of the cluster."""
    import ray
    import torch

    if (found := _versions()) != wanted:
        raise ClusterError(
            f"{socket.gethostname()}: has {found}, but the command runs {wanted}; install the same versions on every "
            "machine"
        )
    torch.set_num_threads(threads)
    name = reference[0].hex()
    if name not in _last_work:
        _last_work.clear()
        _last_work[name] = _unpickle(ray.get(reference[0]))
    function, common = _last_work[name]
    return function(*common, item)


def _unpickle(pickled: bytes) -> Any:
    try:
        return pickle.loads(pickled)  # noqa: S301 (from the command that gave the work)
    except (EcgQuorumError, OSError) as error:
        raise ClusterError(
            f"{socket.gethostname()}: {error}; every machine of the cluster needs the same files under the same path"
        ) from error
    except ImportError as error:
        raise ClusterError(f"{socket.gethostname()}: {error}; install the same versions on every machine") from error
