"""The results page: scorecards as one Markdown page, the paper's figures beside ours, and what of the paper holds."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ecgquorum.atomic import write_atomically
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.claims import claims_of
from ecgquorum.report.published import published_data
from ecgquorum.report.tables import PAPER_MEASURES, Cell, Table, tables_of

_HEAD = """# Results

*Written by `make docs` from the scorecards in [results/](results/); do not edit it here.*

Every figure is in per cent with its 95 % interval (bootstrap over recordings); below it the paper's figure, where it has
one. **Bold** is the best of ours in a column. The recordings of the test part were used for this and for nothing else:
[experiments.md](experiments.md) says what was chosen on the tune part, and how often the test part was touched.

What differs from the paper in all of this: members are the `compact` network (0.4 million parameters, 100 Hz inside)
instead of the 13-block one; a tenth of the training recordings is held out as the tune part, on which checkpoints and
temperatures are chosen, so members see 90 % of what the paper's saw or less; exact duplicates are left out before the
split; uncertainty is normalised by its range on the training part, not on the test part; attacks never touch padding.
"""


def write_results(cards: Sequence[Scorecard], path: str | Path) -> Path:
    """Write the page to `path`."""
    if not cards:
        raise ScorecardError("expected a scorecard to report, found none")
    path = Path(path)
    write_atomically(path, "\n".join([_HEAD, *(_part(card) for card in cards)]))
    return path


def _part(card: Scorecard) -> str:
    """All that is said of one scorecard."""
    data = card.data
    counts = ", ".join(f"{count} {name}" for name, count in data.n_recordings.items())
    networks = sorted({one.network for one in card.ensembles if one.network})
    lines = [
        f"## {data.source}, {data.part} part",
        "",
        f"{data.n_records} recordings ({counts}); data `{data.data[:12]}`. Members: {', '.join(networks) or 'unknown'}. "
        f"Computed with ecgquorum {card.versions['ecgquorum']}, PyTorch {card.versions['torch']}.",
        "",
    ]
    if published_data(data.classes):
        lines += ["### What holds", "", *_held(card), ""]
    for table in tables_of(card):
        lines += [_rendered(table), ""]
    return "\n".join(lines)


def _held(card: Scorecard) -> Iterator[str]:
    yield "| of the paper's claims | measured here | |"
    yield "| --- | --- | --- |"
    for claim in claims_of(card):
        yield f"| {claim.text} | {claim.measured} | {claim.verdict} |"
    yield ""
    best = next((one.name for one in card.ensembles if one.strategy == "dec+part"), None)
    if best is None:
        return
    by_name = {table.name: table for table in tables_of(card)}
    for measure, title in PAPER_MEASURES.items():
        cells = dict(by_name[measure].rows)[best] if measure in by_name else ()
        pairs = list(zip(by_name[measure].columns, cells, strict=True)) if cells else []
        yield f"- **{title.partition(' (')[0]}** of dec+part against the paper's dec+part: {_compared(pairs)}"


def _compared(pairs: list[tuple[tuple[str, str], Cell]]) -> str:
    """How many figures lie above the paper's, how many of them clearly, and which do not."""
    known = [(column, cell) for column, cell in pairs if cell.difference is not None and cell.estimate]
    above = [cell for _, cell in known if (cell.difference or 0) > 0]
    clear = [cell for cell in above if cell.estimate and cell.paper is not None and cell.estimate.low > cell.paper]
    below = [f"{' '.join(filter(None, column))} ({cell.difference:+.1f})" for column, cell in known if cell not in above]
    text = f"{len(above)} of {len(known)} figures above it, {len(clear)} by more than the interval"
    return text + (f"; not above: {', '.join(below)}." if below else ".")


def _rendered(table: Table) -> str:
    titles = [f"{heading}<br>{label}" if heading else label for heading, label in table.columns]
    lines = [f"### {table.title}", "", _line(["", *titles]), _line(["---", *["---:"] * len(titles)])]
    lines += [_line([f"**{name}**", *(_told(cell, table.digits) for cell in cells)]) for name, cells in table.rows]
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines)


def _told(cell: Cell, digits: int) -> str:
    if cell.estimate is None:
        return f"– ({cell.reason})" if cell.reason else "–"
    found = cell.estimate
    value = f"{found.value:.{digits}f}"
    text = f"{f'**{value}**' if cell.best else value} ({found.low:.{digits}f}–{found.high:.{digits}f})"
    return text if cell.paper is None else f"{text}<br>*{cell.paper:.{digits}f}*"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


