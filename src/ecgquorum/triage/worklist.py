"""The worklist: what people are to read, the most uncertain first, then what is certain, then what cannot be read."""

import csv
import html
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ecgquorum._internal.atomic import atomic_file, write_atomic
from ecgquorum.report.ecg_paper import LARGE_MM, STANDARD
from ecgquorum.triage.journal import Journal, Row
from ecgquorum.triage.rows import CERTAIN, DEFERRED, UNREADABLE

COLUMNS = (
    "id",
    "class",
    "decision",
    "reason",
    "uncertainty",
    "probability",
    "calibrated_probability",
    "probabilities",
    "votes",
    "quality",
    "quality_reasons",
    "seconds",
    "source",
    "sha256",
    "model_sha256",
)
_SHOWN = 500
_HEIGHT_MM = 20.0


def write_worklist(
    journal: Journal, out: str | Path, title: str, sentence: str, budget: float | None = None
) -> Counter[str]:
    """Write `worklist.csv`, `.jsonl` and `.html` from the journal; gives how many recordings were decided how.

    title:  the model's name · sentence: the policy, for people
    budget: the share of these recordings that may go to people, instead of what the policy decided one by one; those
            of doubtful quality go whatever it is
    """
    out = Path(out)
    counts: Counter[str] = Counter()
    shown: list[Row] = []
    with atomic_file(out / "worklist.csv") as table, atomic_file(out / "worklist.jsonl") as lines:
        writer = csv.DictWriter(table, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in journal.rows() if budget is None else journal.rationed_rows(budget):
            writer.writerow({name: _cell(row[name]) for name in COLUMNS})
            lines.write(json.dumps({name: row[name] for name in COLUMNS}, ensure_ascii=False) + "\n")
            counts[row["decision"]] += 1
            if len(shown) < _SHOWN:
                shown.append(row)
    write_atomic(out / "worklist.html", "".join(_page(shown, counts, title, sentence)))
    return counts


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return " ".join(f"{name}={share:g}" for name, share in value.items())
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    is_formula = isinstance(text, str) and text.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{text}" if is_formula else text  # a spreadsheet would compute what a file's name says


_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Worklist</title><style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; color: #1a1a1a }
.note { background: #fff3cd; border-left: 4px solid #b58900; padding: .5rem .8rem }
.one { border-top: 1px solid #ccc; padding: .7rem 0; display: grid; grid-template-columns: 15rem 1fr; gap: .3rem 1rem }
.one h2 { font-size: 1rem; margin: 0; overflow-wrap: anywhere } .one p { margin: .15rem 0 }
.deferred h2::before { content: "● "; color: #b83a00 } .certain h2::before { content: "✓ "; color: #00704f }
.unreadable h2::before { content: "✕ "; color: #555 } .quiet { color: #555; font-size: .87rem; overflow-wrap: anywhere }
svg { width: 100%; height: auto; background: #fffafa; border: 1px solid #eedada }
@media (max-width: 45rem) { .one { grid-template-columns: 1fr } .strip { overflow-x: auto } svg { width: 45rem } }
</style></head><body>
"""


def _page(rows: Sequence[Row], counts: Counter[str], title: str, sentence: str) -> Iterator[str]:
    yield _HEAD
    yield "<h1>Worklist</h1><p class='note'>Research use only. This is not a medical device.</p>"
    told = ", ".join(f"{counts[name]} {name}" for name in (DEFERRED, CERTAIN, UNREADABLE))
    yield f"<p>{counts.total()} recordings: {told}. Model {html.escape(title)}. {html.escape(sentence)}</p>"
    if counts.total() > len(rows):
        yield f"<p class='quiet'>The first {len(rows)} of {counts.total()}; all of them are in worklist.csv.</p>"
    for row in rows:
        yield from _entry(row)
    yield "</body></html>\n"


def _entry(row: Row) -> Iterator[str]:
    escaped = {key: html.escape(str(row[key])) for key in ("id", "class", "decision", "reason", "source", "quality")}
    yield f"<section class='one {escaped['decision']}'><div><h2>{escaped['id']}</h2>"
    if row["class"]:
        yield (
            f"<p><b>{escaped['class']}</b>, probability {row['calibrated_probability']:.2f}, "
            f"uncertainty {row['uncertainty']:.2f}</p><p>members say {html.escape(', '.join(row['votes']))}</p>"
        )
    yield f"<p>{escaped['decision']}{': ' if row['reason'] else ''}{escaped['reason']}</p>"
    yield f"<p class='quiet'>{escaped['source']}</p></div>{_drawn(row)}</section>\n"


def _drawn(row: Row) -> str:
    """The beginning of the first lead on ECG paper, its large squares alone."""
    trace, seconds = row["trace"], row["trace_s"]
    if len(trace) < 2:
        return "<p class='quiet'>nothing to draw</p>"
    width, middle = seconds * STANDARD.mm_per_s, sorted(trace)[len(trace) // 2]
    step = width / (len(trace) - 1)
    half = _HEIGHT_MM / 2
    points = " ".join(
        f"{i * step:.2f},{half - max(-half, min(half, (value - middle) / 1000 * STANDARD.mm_per_mv)):.2f}"
        for i, value in enumerate(trace)
    )
    thin = "".join(f"M{x},0V{_HEIGHT_MM:g}" for x in range(0, int(width) + 1, LARGE_MM))
    thin += "".join(f"M0,{y}H{width:.1f}" for y in range(0, int(_HEIGHT_MM) + 1, LARGE_MM))
    return (
        "<div class='strip'>"
        f"<svg viewBox='0 0 {width:.1f} {_HEIGHT_MM:g}' role='img' aria-label='first lead, {STANDARD}'>"
        f"<path d='{thin}' stroke='#f0c8c8' stroke-width='.15' fill='none'/>"
        f"<polyline points='{points}' fill='none' stroke='#111' stroke-width='.25'/></svg></div>"
    )
