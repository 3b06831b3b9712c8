"""One function on several processes at once that can speak to each other, by Ray Train."""

import importlib.util
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ecgquorum.errors import ClusterError, EcgQuorumError, RankLostError
from ecgquorum.parallel.distributed import TIMEOUT
from ecgquorum.parallel.ray_connection import connected

_NEEDED = ("ray", "fsspec", "pandas", "pyarrow", "requests")
"""What Ray Train cannot be imported without."""


def on_ranks(
    function: Callable[..., None],
    arguments: tuple[Any, ...],
    n_ranks: int,
    *,
    scratch: Path,
    gpus: bool = False,
    address: str | None = None,
) -> None:
    """Call the function with these arguments on so many processes, which are a process group of PyTorch while it runs.

    scratch: a folder that Ray Train keeps its notes in, seen by all machines; removed afterwards
    gpus:    give each process a GPU, where the cluster has any
    address: as for `connected`
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ClusterError(
            f'expected Ray Train, found no {" and no ".join(missing)}; get it with: pip install "ecgquorum[cluster]"'
        )
    with connected(address, n_ranks) as ray:
        from ray.train import RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer

        there = ray.cluster_resources()
        gpus = gpus and "GPU" in there
        kind = "GPU" if gpus else "CPU"
        if there.get(kind, 0) < n_ranks:
            raise ClusterError(
                f"--ranks: expected a {kind} of the cluster for each of {n_ranks}, found {there.get(kind, 0):g}"
            )
        trainer = TorchTrainer(
            _called,
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


def _called(config: dict[str, Any]) -> None:
    import ray.train.torch
    import torch

    device = ray.train.torch.get_device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    config["function"](*config["arguments"])


def _cause(error: Any) -> EcgQuorumError:
    """What a rank has told of; that another one had stopped is only a consequence."""
    failures = [getattr(failure, "_base_exc", failure) for failure in getattr(error, "worker_failures", {}).values()]
    foreseen = [failure for failure in failures if isinstance(failure, EcgQuorumError)]
    if foreseen:
        return min(foreseen, key=lambda failure: isinstance(failure, RankLostError))
    first = str(failures[0] if failures else error).strip().splitlines()[0]
    return ClusterError(f"expected every rank to finish, found one that failed: {first}; go on with --resume")
