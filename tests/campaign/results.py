"""What the sittings of a campaign have found: their counts added up, and a table."""

import fcntl
import itertools
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One row of the table.

    tests:    a file of tests, and `::` with words that choose some of them
    wanted:   the full count
    variable: the environment variable of the count (without ECGQUORUM_); none: each test counts what it has done,
              or 1, and is not run again to count more
    minutes:  at most so long in one sitting; loops of the campaign stop by themselves before
    """

    name: str
    tests: str
    wanted: int
    variable: str = ""
    minutes: float = 10.0


class Results:
    """The sittings of each row, in `campaign.json` of a folder."""

    def __init__(self, folder: Path, rows: Sequence[Row]) -> None:
        self._folder, self._rows = folder, rows
        self._sittings: dict[str, list[dict[str, Any]]] = {}
        self._read()

    def add(self, row: Row, sitting: dict[str, Any]) -> None:
        """Add a sitting to those in the file, to which another process may have added some."""
        with self._locked():
            self._sittings.setdefault(row.name, []).append(sitting)

    def refresh(self) -> None:
        """Read what other processes have added, and write the table."""
        with self._locked():
            pass

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else reads or writes between our reading and our writing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "campaign.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._read()
            yield
            self._write()

    def _read(self) -> None:
        path = self._folder / "campaign.json"
        if path.is_file():
            self._sittings = json.loads(path.read_text())

    def sittings(self, row: Row) -> list[dict[str, Any]]:
        return self._sittings.get(row.name, [])

    def next_seed(self, row: Row) -> int:
        """A seed that no sitting has passed with; so it is the same one again after one that failed."""
        passed = {one["seed"] for one in self.sittings(row) if one["tests"] and not sitting_failures(one)}
        return next(seed for seed in itertools.count(1) if seed not in passed)

    def done(self, row: Row) -> int:
        """What was done by tests that passed; the same seed twice counts once."""
        counts: dict[tuple[str, int], int] = {}
        for sitting in self.sittings(row):
            for name, test in sitting["tests"].items():
                number = int(test["properties"].get("done", 1)) if test["outcome"] == "passed" else 0
                counts[name, sitting["seed"] if row.variable else 0] = number
        return sum(counts.values())

    def failures(self, row: Row) -> list[str]:
        """Tests that failed when they were run last."""
        latest = {name: test for sitting in self.sittings(row) for name, test in sitting["tests"].items()}
        return sitting_failures({"tests": latest})

    def is_complete(self, row: Row) -> bool:
        return self.done(row) >= row.wanted and not self.failures(row)

    def outcome(self, row: Row) -> str:
        sittings = self.sittings(row)
        if not sittings:
            return "not run"
        failed = self.failures(row)
        notes = [f"failed: {text}" for text in failed] or ["passed" if self.done(row) else "not finished"]
        once = sum(bool(sitting_failures(one)) for one in sittings) - bool(failed)
        notes += [f"failed in {once} earlier sitting{'s' * (once > 1)}"] if once > 0 else []
        notes += ["stopped at the time limit"] * bool(sittings[-1]["stopped"])
        tests = [test for one in sittings for test in one["tests"].values()]
        skipped = {test["message"] for test in tests if test["outcome"] == "skipped"}
        return "; ".join(notes + [f"skipped: {text}" for text in sorted(skipped)])

    def line(self, row: Row) -> str:
        """The row of the table."""
        found: dict[str, float] = {}
        for sitting in self.sittings(row):
            for test in sitting["tests"].values():
                for name, value in test["properties"].items():
                    if name != "done" and test["outcome"] == "passed":
                        found[name] = found.get(name, 0) + value
        run = ", ".join([f"{self.done(row):,}", *(f"{value:g} {name}" for name, value in found.items())])
        minutes = sum(one["minutes"] for one in self.sittings(row))
        cells = (row.name, f"{row.wanted:,}", run, self.outcome(row), len(self.sittings(row)), f"{minutes:.1f}")
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    def _write(self) -> None:
        scratch = self._folder / "campaign.json.partial"
        scratch.write_text(json.dumps(self._sittings, indent=1) + "\n")
        scratch.replace(self._folder / "campaign.json")
        head = ["| what | wanted | run | outcome | sittings | minutes |", "|---|---|---|---|---|---|"]
        (self._folder / "campaign.md").write_text("\n".join([*head, *map(self.line, self._rows)]) + "\n")


def sitting_failures(sitting: dict[str, Any]) -> list[str]:
    return [f"{name}: {one['message']}" for name, one in sitting["tests"].items() if one["outcome"] == "failed"]


def read_report(path: Path) -> dict[str, dict[str, Any]]:
    """Name of each test -> its outcome, why it failed or was skipped, and the numbers that it recorded."""
    tests = {}
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 (our own file)
        failed = [*case.iter("failure"), *case.iter("error")]
        skipped = [*case.iter("skipped")]
        outcome = "failed" if failed else "skipped" if skipped else "passed"
        said = next((one.get("message") or "" for one in [*failed, *skipped]), "")
        properties = {one.get("name", ""): float(one.get("value") or 0) for one in case.iter("property")}
        message = (said.splitlines() or [""])[0][:300]
        tests[case.get("name", "")] = {"outcome": outcome, "message": message, "properties": properties}
    return tests
