"""Run one function on several ranks, by Ray Train."""

import importlib.util
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ecgquorum.errors import ClusterError, EcgQuorumError, RankLostError
from ecgquorum.parallel.distributed import TIMEOUT
from ecgquorum.parallel.ray_connection import connect_ray

_NEEDED = ("ray", "fsspec", "pandas", "pyarrow", "requests")
"""Packages that Ray Train needs to be imported."""


def run_on_ranks(
    function: Callable[..., None],
    arguments: tuple[Any, ...],
    n_ranks: int,
    *,
    scratch: Path,
    gpus: bool = False,
    address: str | None = None,
) -> None:
    """Call the function with these arguments on `n_ranks` processes of one PyTorch process group.

    scratch: folder for the state of Ray Train, seen by all machines; removed afterwards
    gpus:    give each process a GPU, where the cluster has any
    address: as for `connect_ray`
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ClusterError(f'Ray Train needs {" and ".join(missing)}; install with: pip install "ecgquorum[cluster]"')
    with connect_ray(address, n_ranks) as ray:
        from ray.train import RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer

        resources = ray.cluster_resources()
        gpus = gpus and "GPU" in resources
        kind = "GPU" if gpus else "CPU"
        if resources.get(kind, 0) < n_ranks:
            raise ClusterError(
                f"--ranks {n_ranks}: needs a {kind} for each rank, but the cluster has {resources.get(kind, 0):g}"
            )
        trainer = TorchTrainer(
            _call_function,
            train_loop_config={"function": function, "arguments": arguments},
            torch_config=TorchConfig("cpu:gloo,cuda:nccl" if gpus else "gloo", timeout_s=int(TIMEOUT.total_seconds())),
            scaling_config=ScalingConfig(num_workers=n_ranks, use_gpu=gpus),
            run_config=RunConfig(name="ranks", storage_path=str(scratch.resolve())),
        )
        handler = signal.getsignal(signal.SIGINT)
        try:
            trainer.fit()
        except SystemExit:  # how Ray Train ends when it is interrupted
            raise KeyboardInterrupt from None
        except TrainingFailedError as error:
            raise _cause(error) from error
        finally:
            signal.signal(signal.SIGINT, handler)
            shutil.rmtree(scratch, ignore_errors=True)
            with suppress(OSError):  # where nothing else was written
                scratch.parent.rmdir()


def _call_function(config: dict[str, Any]) -> None:
    import ray.train.torch
    import torch

    device = ray.train.torch.get_device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    config["function"](*config["arguments"])


def _cause(error: Any) -> EcgQuorumError:
    """The error of the rank that failed first; that another rank has stopped is only a consequence."""
    failures = [getattr(failure, "_base_exc", failure) for failure in getattr(error, "worker_failures", {}).values()]
    known = [failure for failure in failures if isinstance(failure, EcgQuorumError)]
    if known:
        return min(known, key=lambda failure: isinstance(failure, RankLostError))
    first = str(failures[0] if failures else error).strip().splitlines()[0]
    return ClusterError(f"a rank failed: {first}; continue with --resume")
