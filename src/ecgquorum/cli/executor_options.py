"""Options of commands that can run on several processes or machines."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.console import print_warning
from ecgquorum.errors import ClusterError

if TYPE_CHECKING:
    from ecgquorum.parallel import Executor


class Where(StrEnum):
    """Where the work runs."""

    LOCAL = "local"
    RAY = "ray"


ExecutorOption = Annotated[
    Where, typer.Option("--executor", help="Where the work runs: processes of this machine, or a Ray cluster.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of processes. Default: 1; with --address, all of the cluster.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads per process. Default: the cores divided by the processes."),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="With --executor ray: address of the cluster, auto or HOST:PORT. Default: start Ray on this machine."
    ),
]


@contextmanager
def choose_executor(
    where: Where, workers: int | None, threads: int | None, address: str | None, device: str = "auto"
) -> Iterator["Executor | None"]:
    """Open the executor that the options ask for; None: this process does the work itself."""
    import torch

    from ecgquorum.parallel import LocalExecutor

    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "LOCAL_RANK" in os.environ:
        raise ClusterError("torchrun works with the command train only; use --workers here")
    if address is not None and where is not Where.RAY:
        raise ClusterError("--address needs --executor ray")
    if address is not None and workers is not None:
        raise ClusterError("--workers and --address exclude each other: a cluster is used as a whole")
    if threads:
        torch.set_num_threads(threads)
    if where is Where.LOCAL and (workers or 1) == 1:
        yield None
        return
    shared = threads or max(1, torch.get_num_threads() // (workers or 1))
    if where is Where.LOCAL:
        with LocalExecutor(workers or 1, shared) as executor:
            executor.progress = _Warnings()
            yield executor
        return
    from ecgquorum.parallel.ray_executor import RayExecutor

    n_threads = shared if address is None else threads or 1
    with RayExecutor(address, n_threads, wants_gpu=device != "cpu", workers=workers or 1) as cluster:
        cluster.progress = _Warnings()
        yield cluster


class _Warnings:
    """Prints the lines that an executor logs."""

    def update(self, text: str, done: float, total: float) -> None:
        pass

    def log(self, line: str) -> None:
        print_warning(line)
