"""Measure how many recordings triage classifies per second, and its peak memory; also against another checkout.

    python -m benchmarks.triage [--folder DIR] [--few N] [--many N] [--rounds N] [--against CHECKOUT]

Through the command line, with the shipped one-lead bundle: simulated one-lead WFDB recordings of 30 s, or the first
recordings (.hea and .mat or .dat) of a folder. The rate is that between the two numbers of files, so that start-up does
not count. With --against, a checkout of another version (`git worktree add DIR COMMIT`) takes turns with this one.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from ecgquorum.recordings import write
from ecgquorum.simulation import simulate

from .commands import run_triage

AIM_PER_SECOND = 200.0
_DISTINCT = 50


def write_recordings(folder: Path, n_recordings: int) -> None:
    """Write `n_recordings` files; every fiftieth has the same samples."""
    folder.mkdir()
    made = [simulate("NAO"[seed % 3], seed=seed, leads=("ECG",), seconds=30).recording for seed in range(_DISTINCT)]
    for number in range(n_recordings):
        write(made[number % _DISTINCT], folder / f"r{number:06d}.hea")


def copy_recordings(source: Path, folder: Path, n_recordings: int) -> None:
    """Copy the first `n_recordings` with all of their files."""
    folder.mkdir()
    headers = sorted(source.glob("*.hea"))[:n_recordings]
    if len(headers) < n_recordings:
        raise SystemExit(f"{source}: expected at least {n_recordings} recordings, found {len(headers)} files *.hea")
    for header in headers:
        for file in source.glob(f"{header.stem}.*"):
            shutil.copy(file, folder)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="WFDB recordings; without it, simulated ones")
    parser.add_argument("--few", type=int, default=500)
    parser.add_argument("--many", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    given = parser.parse_args()
    sources: dict[str, Path | None] = {"before": given.against / "src"} if given.against else {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / name for name in ("few", "many")]
        for folder, n_recordings in zip(folders, (given.few, given.many), strict=True):
            if given.folder:
                copy_recordings(given.folder, folder, n_recordings)
            else:
                write_recordings(folder, n_recordings)
        more = given.many - given.few
        print(f"{'':8} {given.few:>6} files (s) {'files a second':>15} {'CPU ms a file':>14} {'memory (MB)':>16}")
        for number in range(given.rounds):
            for name, source in {**sources, "now": None}.items():
                few, many = (run_triage(f, Path(scratch) / f"{name}-{number}-{f.name}", source) for f in folders)
                rate, cpu_ms = more / (many.seconds - few.seconds), 1000 * (many.cpu_s - few.cpu_s) / more
                memory = f"{few.memory_mb:.0f}, {many.memory_mb:.0f}"
                print(f"{name:8} {few.seconds:16.1f} {rate:15.0f} {cpu_ms:14.1f} {memory:>16}", flush=True)
    print(f"aim: {AIM_PER_SECOND:g} a second on 2 cores, and constant memory")


if __name__ == "__main__":
    main()
