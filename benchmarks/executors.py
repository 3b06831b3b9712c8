"""What it costs to have work done elsewhere: starting, each task, and a whole triage, by each executor.

    python -m benchmarks.executors [--recordings N]

Wants an idle machine and Ray. Seconds are this machine's; what carries over are the ratios and the time of a task.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.triage import fill
from ecgquorum import load_ensemble
from ecgquorum.parallel import Executor, LocalExecutor, Task
from ecgquorum.parallel.ray_executor import RayExecutor
from ecgquorum.recordings import SandboxLimits
from ecgquorum.triage import Threshold, triage_files

_TASKS, _PAYLOAD = 300, 100_000


def nothing(common: bytes, item: int) -> bytes:
    """A task that does nothing and gives as much as a shard of triage does."""
    del item
    return common[:_PAYLOAD]


def started(make: Callable[[], Executor]) -> tuple[Executor, float]:
    """An executor, and the seconds until two tasks are done, its first."""
    begun = time.perf_counter()
    executor = make()
    list(executor.run(nothing, [Task(str(i), i) for i in range(2)], (bytes(5_000_000),)))
    return executor, time.perf_counter() - begun


def task_ms(executor: Executor) -> float:
    """Milliseconds a task, when there are many and they do nothing."""
    common = bytes(5_000_000)  # as large as an ensemble
    list(executor.run(nothing, [Task(str(i), i) for i in range(8)], (common,)))
    begun = time.perf_counter()
    list(executor.run(nothing, [Task(str(i), i) for i in range(_TASKS)], (common,)))
    return 1000 * (time.perf_counter() - begun) / _TASKS


def triaged_s(folder: Path, out: Path, executor: Executor | None) -> float:
    """Seconds of a triage; the model is loaded and what must be started for it is counted."""
    ensemble = load_ensemble("physionet2017-compact")
    begun = time.perf_counter()
    limits = SandboxLimits(1 if executor else 2)
    with triage_files(ensemble, Threshold(0.5), [folder], out, executor=executor, limits=limits):
        return time.perf_counter() - begun


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=2000)
    n_recordings = parser.parse_args().recordings
    kinds: dict[str, Callable[[], Executor]] = {
        "1 process": lambda: LocalExecutor(1, 1),
        "2 processes": lambda: LocalExecutor(2, 1),
        "Ray, room for 2": lambda: RayExecutor(None, 1, workers=2),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "in"
        fill(folder, n_recordings)
        here = triaged_s(folder, Path(scratch) / "here", None)
        print(f"{'':16} {'start (s)':>10} {'a task (ms)':>12} {'triage (s)':>11} {'a second':>9} {'of here':>8}")
        print(f"{'here, 2 readers':16} {'':>10} {'':>12} {here:11.1f} {n_recordings / here:9.0f} {1:8.2f}")
        for number, (name, make) in enumerate(kinds.items()):
            executor, start = started(make)
            with executor:
                each = task_ms(executor)
                seconds = triaged_s(folder, Path(scratch) / str(number), executor)
            rate = n_recordings / seconds
            print(f"{name:16} {start:10.1f} {each:12.2f} {seconds:11.1f} {rate:9.0f} {here / seconds:8.2f}")


if __name__ == "__main__":
    from benchmarks.executors import main as by_its_name  # Ray's processes must find what they are given

    by_its_name()
