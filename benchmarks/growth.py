"""How time grows with the number of files, the length, the number of members and the cores, as a plot.

python -m benchmarks.growth --out FILE
"""

import argparse
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from .commands import run_triage
from .compact import make_batch, make_ensemble
from .measuring import seconds
from .triage import write_recordings

FILES, LENGTHS_S, MEMBERS = (100, 200, 400), (15, 30, 60, 120), (1, 2, 3, 4, 6, 8)
_RECORDS = 16


def measure(out: Path) -> None:
    """Print the times and draw them."""
    cores = sorted(os.sched_getaffinity(0))
    counts = sorted({1, min(2, len(cores))})
    print("\ngrowth: seconds of triage by files, milliseconds of a prediction by length and members")
    files = {n: _time_triage(cores[:n]) for n in counts}
    for n, times in files.items():
        _print(f"triage of {', '.join(map(str, FILES))} files, {n} of the cores", times)
    lengths, members = _time_lengths(), _time_members()
    _print(f"{', '.join(map(str, LENGTHS_S))} s by three members", lengths)
    _print(f"30 s by {', '.join(map(str, MEMBERS))} members", members)
    _draw(out, files, lengths, members)
    print(f"drawn: {out}")


def _print(name: str, times: list[float]) -> None:
    print(f"  {name:62s} " + "  ".join(f"{one:.1f}" for one in times), flush=True)


def _time_triage(cores: list[int]) -> list[float]:
    """Seconds of triage of each number of files, start-up included, on these cores."""
    before, times = os.sched_getaffinity(0), []
    os.sched_setaffinity(0, cores)  # commands that are started inherit it
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for n_files in FILES:
                folder = Path(scratch) / f"in-{n_files}"
                write_recordings(folder, n_files)
                times.append(run_triage(folder, Path(scratch) / f"out-{n_files}").seconds)
    finally:
        os.sched_setaffinity(0, before)
    return times


def _time_lengths() -> list[float]:
    ensemble = make_ensemble(3, max(LENGTHS_S))
    batches = [make_batch(_RECORDS, length) for length in LENGTHS_S]
    return [1000 * seconds(lambda b=b: ensemble.member_probs(b)) / _RECORDS for b in batches]  # type: ignore[misc]


def _time_members() -> list[float]:
    batch, ensembles = make_batch(_RECORDS, 30.0), [make_ensemble(k) for k in MEMBERS]
    return [1000 * seconds(lambda e=e: e.member_probs(batch)) / _RECORDS for e in ensembles]  # type: ignore[misc]


def _draw(out: Path, files: dict[int, list[float]], lengths: list[float], members: list[float]) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for n_cores, times in files.items():
        axes[0].plot(FILES, times, "o-", label=f"{n_cores} core{'s' if n_cores > 1 else ''}")
    axes[0].set(title="triage, start-up included", xlabel="files of 30 s", ylabel="seconds")
    axes[0].legend()
    threads = torch.get_num_threads()
    axes[1].plot(LENGTHS_S, lengths, "o-")
    axes[1].set(title=f"prediction, 3 members, {threads} threads", xlabel="length (s)", ylabel="ms a recording")
    axes[2].plot(MEMBERS, members, "o-")
    axes[2].set(title=f"prediction, 30 s, {threads} threads", xlabel="members", ylabel="ms a recording")
    for axis in axes:
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    plt.close(figure)


def main() -> None:
    """Draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the picture to write")
    measure(parser.parse_args().out)


if __name__ == "__main__":
    main()
