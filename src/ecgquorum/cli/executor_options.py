"""The options of commands whose work other processes and machines can do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.console import err
from ecgquorum.errors import ClusterError

if TYPE_CHECKING:
    from ecgquorum.parallel import Executor


class Where(StrEnum):
    """Who does the work."""

    LOCAL = "local"
    RAY = "ray"


ExecutorOption = Annotated[
    Where, typer.Option("--executor", help="Who does the work: processes of this machine, or a Ray cluster.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="How many processes at once. Default: 1; a cluster is used as far as it goes.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Cores for each process, which fix the last bits of results. Default: the cores shared."),
]
Address = Annotated[
    str | None,
    typer.Option(help="With --executor ray: auto or HOST:PORT. Default: Ray is started on this machine."),
]


@contextmanager
def choose_executor(
    where: Where, workers: int | None, threads: int | None, address: str | None, device: str = "auto"
) -> Iterator["Executor | None"]:
    """The executor that the options ask for; None: this process does the work itself."""
    import torch

    from ecgquorum.parallel import LocalExecutor

    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "LOCAL_RANK" in os.environ:
        raise ClusterError("torchrun: expected the command train under it, found another; use --workers here")
    if address is not None and where is not Where.RAY:
        raise ClusterError(f"--address: expected --executor ray with it, found {where}")
    if address is not None and workers is not None:
        raise ClusterError("--workers: expected it without --address, found both; a cluster is used as far as it goes")
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
        err.print(line, style="yellow", markup=False)
