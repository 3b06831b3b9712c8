"""The reliability campaign: kills, damaged files, full disks, jumping clocks and large inputs, within a time limit.

    python -m tests.campaign --minutes 60 --out runs/campaign            # or `make campaign`
    python -m tests.campaign --only "kill -9" --minutes 10               # some rows; results are added to those there

Runs tests with large counts, one row after the other; everything is on this machine and on loopback. After every row
`campaign.json` has this sitting too, and `campaign.md` the table of all sittings with the counts that were really run.
A row with its full count is not run again, one that was stopped goes on with the rest and another seed. Two sittings
of one row at the same time need ECGQUORUM_CAMPAIGN_SEED, different ones. The exit code is 1 if a row failed.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .results import Results, Row, read_report

REPOSITORY = Path(__file__).parents[2]
DURABILITY = "tests/service/test_durability.py"
DAMAGED = "tests/contracts/test_mutations.py::many"

ROWS = (
    Row("tampered bundles, all refused", "test_tampered_bundles.py::loads", 1000, "TAMPERED", minutes=4),
    Row("tampered bundles, on the command line", "test_tampered_bundles.py::command", 4, minutes=3),
    Row("two processes on one output", "test_two_processes.py", 9, minutes=6),
    Row("clock jumps: training, triage, a file from the future", "test_clock.py", 3, minutes=6),
    Row("disk full in every writing command", "test_full_disk.py::full_disk_is", 16, minutes=10),
    Row("kill -9 in training, bit-identical in the end", "test_kills.py::training", 50, "KILLS_TRAINING"),
    Row("kill -9 in triage, same worklist in the end", "test_kills.py::triage", 50, "KILLS_TRIAGE"),
    Row("24 h recording, hours", "test_sizes.py::day", 24, "HOURS"),
    Row("200 uploads at a time, both databases", f"{DURABILITY}::uploads", 2),
    Row("desk on a full disk, both databases", "tests/service/test_full_disk.py", 2),
    Row("kill -9 of the desk, SQLite", f"{DURABILITY}::many_kills and sqlite", 50, "KILLS_DESK", minutes=12),
    Row("kill -9 of the desk, PostgreSQL", f"{DURABILITY}::many_kills and postgresql", 50, "KILLS_DESK", minutes=12),
    Row("recordings in one folder", "test_sizes.py::thousands", 20_000, "RECORDINGS", minutes=12),
    Row("damaged files per format", DAMAGED, 10_000, "MUTATIONS", minutes=30),
)


def run_row(row: Row, results: Results, minutes: float) -> None:
    """Run the tests of a row for what is left of its count, and add what they report to the results."""
    seed = int(os.environ.get("ECGQUORUM_CAMPAIGN_SEED") or results.next_seed(row))
    environment = os.environ | {
        "ECGQUORUM_CAMPAIGN_UNTIL": str(time.time() + 60 * 0.8 * minutes),  # a loop then finishes what it has begun
        "ECGQUORUM_CAMPAIGN_SEED": str(seed),
        "ECGQUORUM_MUTATION_SEED": str(seed),
        "OMP_NUM_THREADS": "1",
    }
    if row.variable:
        environment[f"ECGQUORUM_{row.variable}"] = str(max(1, row.wanted - results.done(row)))
    path, _, chosen = row.tests.partition("::")
    path = path if path.startswith("tests/") else f"tests/campaign/{path}"
    marker = "slow" if path.startswith("tests/service") else "slow or not slow"
    options = ["-m", marker, "-q", "-o", "junit_family=xunit1", *(["-k", chosen] if chosen else [])]
    with tempfile.TemporaryDirectory(dir=in_memory(), ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL has an account of its own
        environment["TMPDIR"] = folder
        report, printed = Path(folder) / "report.xml", Path(folder) / "printed"
        command = [sys.executable, "-m", "pytest", path, *options, f"--junitxml={report}"]
        began = time.monotonic()
        with printed.open("w") as file:
            is_stopped = run_command(command, environment, file, 60 * minutes)
        tests = read_report(report) if report.exists() else {}
        passed = bool(tests) and all(test["outcome"] != "failed" for test in tests.values())
        results.add(
            row,
            {
                "date": time.strftime("%Y-%m-%d %H:%M"),
                "commit": subprocess.run(
                    ["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
                ).stdout.strip(),
                "seed": seed,
                "minutes": round((time.monotonic() - began) / 60, 1),
                "stopped": is_stopped,
                "tests": tests,
                "said": "" if passed else printed.read_text(errors="replace")[-6000:],
            },
        )


def in_memory() -> str | None:
    """A file system in memory with room for all rows: a disk is not what they test, and takes half of their time."""
    place = Path("/dev/shm")  # noqa: S108 (the folder in it has a name of its own)
    return str(place) if place.is_dir() and shutil.disk_usage(place).free > 4 << 30 else None


def run_command(command: list[str], environment: dict[str, str], file, seconds: float) -> bool:
    """Run it; at the limit it is interrupted, so that it stops its servers, and then killed. Was it stopped?"""
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="for all rows of this sitting together")
    parser.add_argument("--patience", type=float, default=1.0, help="times the limit of each row, on a shared machine")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("runs/campaign"))
    arguments = parser.parse_args()
    ends, results = time.monotonic() + 60 * arguments.minutes, Results(arguments.out, ROWS)
    for row in ROWS:
        left = (ends - time.monotonic()) / 60
        if arguments.only not in row.name or results.is_complete(row) or left < 1:
            continue
        run_row(row, results, min(row.minutes * arguments.patience, left))
        print(f"{time.strftime('%H:%M:%S')} {results.line(row)}", flush=True)
    results.refresh()
    return int(any(results.failures(row) for row in ROWS))


if __name__ == "__main__":
    sys.exit(main())
