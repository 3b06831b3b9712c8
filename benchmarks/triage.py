"""Measure how many recordings triage classifies per second, and its peak memory.

    python -m benchmarks.triage [--recordings N]

Simulated one-lead WFDB recordings of 30 s, the shipped one-lead bundle, through the command line. The start-up time
(imports, model, sandbox workers) is measured with one recording and subtracted.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ecgquorum.recordings import write
from ecgquorum.simulation import simulate

AIM_PER_SECOND = 100.0
_DISTINCT = 50


def write_recordings(folder: Path, n_recordings: int) -> None:
    """Write `n_recordings` files; every fiftieth has the same samples."""
    folder.mkdir()
    made = [simulate("NAO"[seed % 3], seed=seed, leads=("ECG",), seconds=30).recording for seed in range(_DISTINCT)]
    for number in range(n_recordings):
        write(made[number % _DISTINCT], folder / f"r{number:06d}.hea")


def run_triage(folder: Path, out: Path) -> tuple[float, float]:
    """Return seconds and peak resident memory in MB of one triage of the folder."""
    line = [sys.executable, "-m", "ecgquorum", "triage", str(folder), "--budget", "10%", "--out", str(out)]
    started = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"triage ended with {status}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=1000)
    n_most = parser.parse_args().recordings
    with tempfile.TemporaryDirectory() as scratch:
        print(f"{'recordings':>10} {'seconds':>8} {'a second':>9} {'largest memory (MB)':>20}")
        start_s = 0.0
        for n_recordings in (1, n_most, 4 * n_most):
            folder = Path(scratch) / f"in-{n_recordings}"
            write_recordings(folder, n_recordings)
            seconds, largest_mb = run_triage(folder, Path(scratch) / f"out-{n_recordings}")
            start_s = start_s or seconds
            rate = f"{n_recordings / (seconds - start_s):9.0f}" if seconds > start_s else " " * 9
            print(f"{n_recordings:>10} {seconds:8.1f} {rate} {largest_mb:20.0f}")
    print(f"aim: at least {AIM_PER_SECOND:g} a second on 2 cores, and constant memory")


if __name__ == "__main__":
    main()
