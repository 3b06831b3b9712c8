"""Write the worklist: recordings for people first, the highest risk at the top, then certain and unreadable ones."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ecgquorum._internal.atomic import atomic_file, write_atomic
from ecgquorum.ensemble.result import CERTAIN, CSV_COLUMNS, DEFERRED, UNREADABLE
from ecgquorum.preprocessing.prepare import TracePreview
from ecgquorum.report.ecg_paper import LARGE_MM, STANDARD
from ecgquorum.report.templates import load_template
from ecgquorum.triage.journal import Journal, JournalEntry

_SHOWN = 500
_HEIGHT_MM = 20.0


def write_worklist(
    journal: Journal, out: str | Path, title: str, sentence: str, budget: float | None = None
) -> Counter[str]:
    """Write `worklist.csv`, `.jsonl` and `.html` from the journal; returns the number of recordings by decision.

    title:  name of the model · sentence: the policy in words
    budget: the share of these recordings that may go to people, instead of what the policy decided one by one; those
            of doubtful quality go in any case
    """
    out = Path(out)
    counts: Counter[str] = Counter()
    shown: list[JournalEntry] = []
    with atomic_file(out / "worklist.csv") as table, atomic_file(out / "worklist.jsonl") as lines:
        writer = csv.DictWriter(table, CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        for entry in journal.entries(budget):
            writer.writerow(entry.result.to_csv_row())
            lines.write(json.dumps(entry.result.to_json(), ensure_ascii=False) + "\n")
            counts[entry.result.decision] += 1
            if len(shown) < _SHOWN:
                shown.append(entry)
    page = load_template("worklist.html", "ecgquorum.triage")
    strips = [(entry.result, _strip(entry.preview)) for entry in shown]
    numbers = [(counts[name], name) for name in (DEFERRED, CERTAIN, UNREADABLE)]
    write_atomic(
        out / "worklist.html",
        page.render(strips=strips, numbers=numbers, n=counts.total(), title=title, sentence=sentence, scale=STANDARD),
    )
    return counts


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
