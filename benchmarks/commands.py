"""Run commands and measure what they take."""

import json
import os
import subprocess
import sys
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


_MEASURE = """
import json, os, resource, subprocess, sys, time
started = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
seconds, usage = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode:
    sys.exit(f"{' '.join(sys.argv[1:])} ended with {done.returncode}: {done.stderr[-500:]}")
print(json.dumps([seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""
"""Run a command from a small process: the peak memory of a process is never below that of the one that starts it."""


def run_command(*arguments: object, environment: Mapping[str, str] | None = None) -> Run:
    """Run `ecgquorum` with these arguments."""
    line = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "ecgquorum", *map(str, arguments)]
    done = subprocess.run(  # noqa: S603
        line, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}, check=False
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    return Run(*json.loads(done.stdout))


def run_triage(folder: Path, out: Path, source: Path | None = None) -> Run:
    """Triage a folder with the shipped one-lead bundle.

    source: of another checkout: its folder `src`; None: this one
    """
    environment = {"PYTHONPATH": str(source)} if source else None
    return run_command("triage", folder, "--budget", "10%", "--out", out, environment=environment)
