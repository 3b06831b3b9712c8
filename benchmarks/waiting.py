"""Where users wait: predictions of recordings of mixed lengths, start-up, triage and `predict` of a folder."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ecgquorum import load_ensemble

from . import previous
from .commands import Run, run_command, run_triage
from .measuring import print_heading, print_row, ratios
from .triage import write_recordings

N_FEW, N_MANY = 500, 1000
_MIXED = 128


def measure(rounds: int) -> None:
    """Print the rows."""
    print_heading("against the path of version 0.1", "times as fast")
    ensemble, random = load_ensemble("physionet2017"), np.random.default_rng(0)
    rate = ensemble.input.rate_hz
    lengths = random.choice([9, 12, 18, 30, 30, 30, 30, 30, 45, 60], _MIXED)  # s, shares as in PhysioNet/CinC 2017
    signals = [random.normal(size=(1, round(s * rate))).astype(np.float32) * 100 for s in lengths]
    ids = [str(i) for i in range(_MIXED)]
    variants: dict[str, Callable[[], object]] = {
        "then": lambda: previous.predict_in_order(ensemble, signals),
        "now": lambda: ensemble.predict_prepared(ids, signals),
    }
    print_row("predictions of recordings of 9 to 60 s", 1 / ratios(variants, rounds)["now"])
    with tempfile.TemporaryDirectory() as folder:
        _measure_files(Path(folder))


def _measure_files(scratch: Path) -> None:
    few, many = scratch / "few", scratch / "many"
    write_recordings(few, N_FEW)
    write_recordings(many, N_MANY)
    print_heading("commands, physionet2017 (four members), simulated files of 30 s", "")
    one = [run_command("predict", next(few.glob("*.hea"))) for _ in range(3)]
    print_row("predict of one file (CPU s)", min(run.cpu_s for run in one), 2.5, most=True)
    _compare_sizes("triage", 200.0, run_triage(few, scratch / "o1"), run_triage(many, scratch / "o2"))
    _compare_sizes("predict", None, run_command("predict", few), run_command("predict", many))


def _compare_sizes(name: str, aim: float | None, small: Run, large: Run) -> None:
    more = N_MANY - N_FEW
    print_row(f"{name} of {N_FEW} files, start-up included (s)", small.seconds)
    print_row(f"{name}, files a second between {N_FEW} and {N_MANY}", more / (large.seconds - small.seconds), aim)
    print_row(f"{name}, CPU of one more file (ms)", 1000 * (large.cpu_s - small.cpu_s) / more)
    print_row(f"{name}, largest memory of {N_MANY} over that of {N_FEW}", large.memory_mb / small.memory_mb, digits=2)
