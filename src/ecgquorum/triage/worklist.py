"""Write the worklist: recordings for people first, urgent classes and the highest risk at the top."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ecgquorum._internal.atomic import atomic_file, write_atomic
from ecgquorum.ensemble.result import (
    BY_QUALITY,
    CERTAIN,
    CSV_COLUMNS,
    DEFERRED,
    SKIPPED,
    UNREADABLE,
    Result,
)
from ecgquorum.errors import TriageError
from ecgquorum.preprocessing.prepare import TracePreview
from ecgquorum.report.ecg_paper import LARGE_MM, STANDARD
from ecgquorum.report.templates import load_template
from ecgquorum.triage.journal import Journal, JournalEntry

_SHOWN = 500
_HEIGHT_MM = 20.0


@dataclass(frozen=True)
class Summary:
    """What a worklist holds.

    decisions: number of files by decision · by_quality: deferred ones whose quality is the reason
    missing:   given paths that do not exist or cannot be read, each with the reason
    ignored:   number of files that were ignored on request
    """

    decisions: dict[str, int]
    by_quality: int
    missing: tuple[str, ...]
    ignored: int

    @property
    def n_files(self) -> int:
        """Files in the worklist."""
        return sum(self.decisions.values())

    def sentence(self) -> str:
        """The counts on one line."""
        counts = {name: f"{n} {name}" for name, n in self.decisions.items() if n}
        if self.by_quality:
            counts[DEFERRED] += f" ({self.by_quality} by quality)"
        if self.ignored:
            counts["ignored"] = f"{self.ignored} ignored"
        return ", ".join(counts.values()) or "no recordings"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        quality = {"deferred_by_quality": self.by_quality, "ignored": self.ignored}
        return {**self.decisions, **quality, "missing": list(self.missing), "files": self.n_files}


def write_worklist(
    journal: Journal, out: str | Path, title: str, sentence: str, budget: float | None = None
) -> Summary:
    """Write `worklist.csv`, `.jsonl` and `.html` from the journal; returns the number of files by decision.

    title:  name of the model · sentence: the policy in words
    budget: the share of the usable recordings that may go to people, instead of what the policy decided one by one
    """
    out = Path(out)
    counts: Counter[str] = Counter(dict.fromkeys((DEFERRED, CERTAIN, UNREADABLE, SKIPPED), 0))
    by_quality = 0
    shown: list[JournalEntry] = []
    with atomic_file(out / "worklist.csv") as table, atomic_file(out / "worklist.jsonl") as lines:
        writer = csv.DictWriter(table, CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        for entry in journal.entries(budget):
            writer.writerow(entry.result.to_csv_row())
            lines.write(json.dumps(entry.result.to_json(), ensure_ascii=False) + "\n")
            counts[entry.result.decision] += 1
            by_quality += entry.result.decision == DEFERRED and entry.result.decided_by == BY_QUALITY
            if len(shown) < _SHOWN:
                shown.append(entry)
    summary = Summary(dict(counts), by_quality, tuple(one.reason for one in journal.failures), journal.n_ignored)
    page = load_template("worklist.html", "ecgquorum.triage")
    rows = [(entry.result, entry.preview, _strip(entry.preview), _links(out, entry.result)) for entry in shown]
    content = page.render(rows=rows, summary=summary, title=title, sentence=sentence, scale=STANDARD)
    write_atomic(out / "worklist.html", content)
    return summary


def read_worklist(path: Path) -> Iterator[Result]:
    """The results in a `worklist.jsonl`, in order."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield Result.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise TriageError(f"{path}, line {number}: expected a result of triage, found: {error!r}") from error


def plot_paths(out: Path, result: Result) -> tuple[Path, Path]:
    """Where the full plot of a recording is, and the timeline of its windows, if they are drawn."""
    name = f"{result.sha256[:16]}-{round(result.worst_window.start_s) if result.worst_window else 0}"
    return out / "plots" / f"{name}.png", out / "plots" / f"{name}-timeline.png"


def _links(out: Path, result: Result) -> dict[str, str]:
    """The pictures, relative to the page; empty for one that is not drawn."""
    paths = zip(("plot", "timeline"), plot_paths(out, result), strict=True)
    return {kind: quote(path.relative_to(out).as_posix()) if path.is_file() else "" for kind, path in paths}


def _strip(preview: TracePreview) -> dict[str, Any] | None:
    """Coordinates in millimetres of ECG paper: the trace and the large squares; None if there is nothing to draw."""
    trace = preview.microvolts
    if len(trace) < 2:
        return None
    width, middle = preview.seconds * STANDARD.mm_per_s, sorted(trace)[len(trace) // 2]
    step, half = width / (len(trace) - 1), _HEIGHT_MM / 2
    points = " ".join(
        f"{i * step:.2f},{half - max(-half, min(half, (value - middle) / 1000 * STANDARD.mm_per_mv)):.2f}"
        for i, value in enumerate(trace)
    )
    grid = "".join(f"M{x},0V{_HEIGHT_MM:g}" for x in range(0, int(width) + 1, LARGE_MM))
    grid += "".join(f"M0,{y}H{width:.1f}" for y in range(0, int(_HEIGHT_MM) + 1, LARGE_MM))
    return {"width": f"{width:.1f}", "height": f"{_HEIGHT_MM:g}", "points": points, "grid": grid}
