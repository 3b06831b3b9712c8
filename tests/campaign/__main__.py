"""The reliability campaign: kills, damaged files, full disks, jumping clocks and large inputs, within a time limit.

    python -m tests.campaign --minutes 60 --out runs/campaign      # or `make campaign`

Runs tests with large counts, one row after the other; everything is on this machine and on loopback. Writes
`campaign.json` and `campaign.md`, a table with the counts that were really run, after every row. Rows that the time
does not reach are in the table as not run. The exit code is 1 if a row failed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
NOTHING: dict[str, object] = {"passed": 0, "failed": [], "skipped": [], "properties": {}}


@dataclass(frozen=True)
class Row:
    """One row of the table.

    tests:     what pytest runs
    wanted:    the full count, in words of the table
    variables: environment variables with the counts
    minutes:   at most so long; loops of the campaign stop by themselves before
    """

    name: str
    tests: tuple[str, ...]
    wanted: str
    variables: dict[str, str] = field(default_factory=dict)
    minutes: float = 10.0


ROWS = (
    Row("tampered bundles, all refused", ("test_tampered_bundles.py",), "1000", {"TAMPERED": "1000"}, 5),
    Row("disk full in every writing command", ("test_full_disk.py",), "16 commands", {}, 10),
    Row("clock jumps", ("test_clock.py",), "3 tests", {}, 5),
    Row("two processes on one output", ("test_two_processes.py",), "9", {}, 6),
    Row("kill -9 in training, bit-identical", ("test_kills.py::test_a_training",), "50", {"KILLS_TRAINING": "50"}, 8),
    Row("kill -9 in triage, same worklist", ("test_kills.py::test_a_triage",), "50", {"KILLS_TRIAGE": "50"}, 8),
    Row("24 h recording", ("test_sizes.py::test_a_recording",), "24", {"HOURS": "24"}, 8),
    Row("20,000 recordings", ("test_sizes.py::test_a_folder",), "20000", {"RECORDINGS": "20000"}, 12),
    Row("desk: kills, full disk, 200 uploads", ("tests/service",), "slow tests", {}, 25),
    Row("damaged files per format", ("tests/contracts/test_mutations.py",), "10000", {"MUTATIONS": "10000"}, 30),
)


def run_row(row: Row, minutes: float, scale: float) -> dict[str, object]:
    """Run the tests of a row; what was done is in the properties that they record."""
    until = time.time() + 60 * minutes
    variables = {f"ECGQUORUM_{name}": str(max(1, round(int(value) * scale))) for name, value in row.variables.items()}
    environment = os.environ | variables | {"ECGQUORUM_CAMPAIGN_UNTIL": str(until - 30), "OMP_NUM_THREADS": "1"}
    tests, chosen = [], []
    for test in row.tests:
        path, _, name = test.partition("::")
        tests.append(path if path.startswith("tests/") else f"tests/campaign/{path}")
        chosen += ["-k", name] if name else []
    marker = "slow" if row.tests[0].startswith("tests/") else "slow or not slow"
    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            *tests,
            *chosen,
            "-m",
            marker,
            "-q",
            "-o",
            "junit_family=xunit1",
            f"--junitxml={report}",
        ]
        began = time.monotonic()
        try:
            done = subprocess.run(
                command,
                cwd=REPOSITORY,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60 * minutes,
                check=False,
            )
            said = done.stdout
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode() + "\nstopped at the time limit"
        seconds = time.monotonic() - began
        found = read_report(report) if report.exists() else dict(NOTHING)
    after = os.times()
    outcome = "failed" if found["failed"] else "passed" if found["passed"] else "stopped at the time limit"
    return {
        "name": row.name,
        "wanted": row.wanted,
        "counts": variables,
        "outcome": outcome,
        **found,
        "seconds": round(seconds),
        "cpu_s": round(after.children_user + after.children_system - before.children_user - before.children_system),
        "said": "" if outcome == "passed" else said[-6000:],
    }


def read_report(path: Path) -> dict[str, object]:
    """Counts of tests, reasons of skips, and the sums of the properties that tests recorded."""
    passed, failed, skipped = 0, [], []
    properties: dict[str, float] = {}
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 (pytest has just written it)
        broken, left = [*case.findall("failure"), *case.findall("error")], case.find("skipped")
        if broken:
            failed.append(f"{case.get('name')}: {broken[0].get('message', '').splitlines()[0][:300]}")
        elif left is not None:
            skipped.append(f"{case.get('name')}: {left.get('message', '')}")
        else:
            passed += 1
        for one in case.iter("property"):
            properties[one.get("name", "")] = properties.get(one.get("name", ""), 0) + float(one.get("value", 0))
    return {"passed": passed, "failed": failed, "skipped": skipped, "properties": properties}


def write_tables(out: Path, rows: list[dict[str, object]]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "campaign.json").write_text(json.dumps(rows, indent=1) + "\n")
    lines = ["| what | wanted | run | outcome | CPU s |", "|---|---|---|---|---|"]
    for row in rows:
        run = ", ".join(f"{value:g} {name}" for name, value in dict(row["properties"]).items())
        run = run.replace(" done", "") or f"{row['passed']} tests"
        notes = [str(row["outcome"]), *(f"skipped: {text}" for text in row["skipped"]), *row["failed"]]
        cells = (row["name"], row["wanted"], run, "; ".join(notes).replace("|", "\\|"), row["cpu_s"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    (out / "campaign.md").write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="for all rows together")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full counts")
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("runs/campaign"))
    arguments = parser.parse_args()
    ends = time.monotonic() + 60 * arguments.minutes
    rows = []
    for row in ROWS:
        if arguments.only and arguments.only not in row.name:
            continue
        left = (ends - time.monotonic()) / 60
        if left < 1:
            rows.append(
                {"name": row.name, "wanted": row.wanted, "outcome": "not run: no time left", **NOTHING, "cpu_s": 0}
            )
        else:
            rows.append(run_row(row, min(row.minutes, left), arguments.scale))
        write_tables(arguments.out, rows)
        print(f"{time.strftime('%H:%M:%S')} {row.name}: {rows[-1]['outcome']} {rows[-1]['properties']}", flush=True)
    return int(any(row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
