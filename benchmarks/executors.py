"""Time the start-up, an empty task and a whole triage of each executor.

    python -m benchmarks.executors [--recordings N]

Needs an idle machine and Ray.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.triage import write_recordings
from ecgquorum import load_ensemble
from ecgquorum.parallel import Executor, LocalExecutor, Task
from ecgquorum.parallel.ray_executor import RayExecutor
from ecgquorum.recordings import SandboxLimits
from ecgquorum.triage import Threshold, triage_files

_TASKS, _PAYLOAD = 300, 100_000


def do_nothing(common: bytes, item: int) -> bytes:
    """An empty task whose result is as large as that of a triage shard."""
    del item
    return common[:_PAYLOAD]


def start_executor(make: Callable[[], Executor]) -> tuple[Executor, float]:
    """Return an executor and the seconds until its first two tasks are done."""
    begun = time.perf_counter()
    executor = make()
    list(executor.run(do_nothing, [Task(str(i), i) for i in range(2)], (bytes(5_000_000),)))
    return executor, time.perf_counter() - begun


def time_task_ms(executor: Executor) -> float:
    """Milliseconds per empty task."""
    common = bytes(5_000_000)  # as large as an ensemble
    list(executor.run(do_nothing, [Task(str(i), i) for i in range(8)], (common,)))
    begun = time.perf_counter()
    list(executor.run(do_nothing, [Task(str(i), i) for i in range(_TASKS)], (common,)))
    return 1000 * (time.perf_counter() - begun) / _TASKS


def time_triage_s(folder: Path, out: Path, executor: Executor | None) -> float:
    """Seconds of a triage, including start-up, without loading the model."""
    ensemble = load_ensemble("physionet2017")
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
        "Ray, 2 tasks": lambda: RayExecutor(None, 1, workers=2),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "in"
        write_recordings(folder, n_recordings)
        here = time_triage_s(folder, Path(scratch) / "here", None)
        print(f"{'':16} {'start (s)':>10} {'a task (ms)':>12} {'triage (s)':>11} {'a second':>9} {'speed-up':>8}")
        print(f"{'no executor':16} {'':>10} {'':>12} {here:11.1f} {n_recordings / here:9.0f} {1:8.2f}")
        for number, (name, make) in enumerate(kinds.items()):
            executor, start = start_executor(make)
            with executor:
                each = time_task_ms(executor)
                seconds = time_triage_s(folder, Path(scratch) / str(number), executor)
            rate = n_recordings / seconds
            print(f"{name:16} {start:10.1f} {each:12.2f} {seconds:11.1f} {rate:9.0f} {here / seconds:8.2f}")


if __name__ == "__main__":
    from benchmarks.executors import main as importable_main  # Ray's processes import functions by module name

    importable_main()
