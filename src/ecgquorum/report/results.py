"""The results page: scorecards as one Markdown page, the paper's figures beside ours, and what of the paper holds."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ecgquorum.atomic import write_atomically
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.claims import claims_of
from ecgquorum.report.published import published_data
from ecgquorum.report.rendering import as_markdown
from ecgquorum.report.tables import PAPER_MEASURES, Cell, Table, tables_of
from ecgquorum.report.templates import template

_OURS = "dec+part"


def write_results(cards: Sequence[Scorecard], path: str | Path) -> Path:
    """Write the page of these scorecards to `path`."""
    if not cards:
        raise ScorecardError("expected a scorecard to report, found none")
    parts = []
    for card in cards:
        tables = tables_of(card)
        known = published_data(card.data.classes) is not None
        claims = list(claims_of(card)) if known else []
        networks = sorted({one.network for one in card.ensembles if one.network})
        parts.append(
            (card, networks, claims, list(_compared(card, tables)), [as_markdown(table).strip() for table in tables])
        )
    path = Path(path)
    write_atomically(path, template("results.md.jinja").render(parts=parts).rstrip() + "\n")
    return path


def _compared(card: Scorecard, tables: list[Table]) -> Iterator[str]:
    """For each of the paper's measures: how dec+part does against the paper's own."""
    own = next((one.name for one in card.ensembles if one.strategy == _OURS), None)
    for table in tables:
        cells = dict(table.rows).get(own or "", ())
        pairs = [
            (" ".join(filter(None, column)), cell)
            for column, cell in zip(table.columns, cells, strict=False)
            if cell.paper is not None and cell.estimate
        ]
        if table.name in PAPER_MEASURES and pairs:
            title = PAPER_MEASURES[table.name].partition(" (")[0]
            yield f"{title}: `{_OURS}` here against `{_OURS}` in the paper: {_counted(pairs)}"


def _counted(pairs: list[tuple[str, Cell]]) -> str:
    """How many figures lie above the paper's, how many of them clearly, and which do not."""
    above = [cell for _, cell in pairs if _difference(cell) > 0]
    clear = [cell for cell in above if cell.estimate and cell.estimate.low > (cell.paper or 0.0)]
    below = [f"{column} ({_difference(cell):+.1f})" for column, cell in pairs if _difference(cell) <= 0]
    text = f"{len(above)} of {len(pairs)} figures above it, {len(clear)} of them with the whole interval"
    return text + (f"; not above: {', '.join(below)}." if below else ".")


def _difference(cell: Cell) -> float:
    return cell.difference or 0.0
