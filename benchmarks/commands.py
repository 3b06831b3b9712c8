"""Run commands and measure what they take."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """What a command took.

    cpu_s:     processor time, that of its workers included
    memory_mb: peak resident memory of its largest process
    """

    seconds: float
    cpu_s: float
    memory_mb: float


def run_command(*arguments: object, environment: Mapping[str, str] | None = None) -> Run:
    """Run `ecgquorum` with these arguments."""
    line = [sys.executable, "-m", "ecgquorum", *map(str, arguments)]
    started = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603
        line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})}
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(line)} ended with {status}")
    return Run(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def run_triage(folder: Path, out: Path, source: Path | None = None) -> Run:
    """Triage a folder with the shipped one-lead bundle.

    source: of another checkout: its folder `src`; None: this one
    """
    environment = {"PYTHONPATH": str(source)} if source else None
    return run_command("triage", folder, "--budget", "10%", "--out", out, environment=environment)
