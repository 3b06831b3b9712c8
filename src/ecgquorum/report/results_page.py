"""The results page: scorecards as one Markdown page, the paper's figures beside ours, and what of the paper holds."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.recipes import without_hardening
from ecgquorum.report.claims import claims_of
from ecgquorum.report.notes import is_simulated, notes_of
from ecgquorum.report.table_formats import as_markdown
from ecgquorum.report.tables import PAPER_MEASURES, Cell, Table, tables_of
from ecgquorum.report.templates import template

_OURS = "dec+part"


def write_results(cards: Sequence[Scorecard], path: str | Path) -> Path:
    """Write the page of these scorecards to `path`; each must be of other recordings."""
    if not cards:
        raise ScorecardError("expected a scorecard to report, found none")
    if len({(card.data.data, card.data.part) for card in cards}) < len(cards):
        raise ScorecardError(
            "expected scorecards of different recordings for one Markdown page, found two of the same; give --out a "
            "folder, or evaluate their ensembles together"
        )
    parts = []
    for card in cards:
        tables = tables_of(card)
        compared = [] if is_simulated(card) else list(_compared(card, tables))
        parts.append(
            (card, notes_of(card), list(claims_of(card)), compared, [as_markdown(one).strip() for one in tables])
        )
    path = Path(path)
    text = template("results.md.jinja").render(parts=parts)
    write_atomic(path, re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n")
    return path


def _compared(card: Scorecard, tables: list[Table]) -> Iterator[str]:
    """For each of the paper's measures: how dec+part does against the paper's own."""
    own = [one.name for one in card.ensembles if one.strategy and without_hardening(one.strategy) == _OURS]
    for table in tables:
        for name, cells in table.rows:
            pairs = [
                (" ".join(filter(None, column)), cell)
                for column, cell in zip(table.columns, cells, strict=True)
                if cell.paper is not None and cell.estimate
            ]
            if name in own and table.name in PAPER_MEASURES and pairs:
                also = f" of {name}" if len(own) > 1 else ""
                yield f"{PAPER_MEASURES[table.name].partition(' (')[0]}{also}: {_counted(pairs)}"


def _counted(pairs: list[tuple[str, Cell]]) -> str:
    """How many figures lie above the paper's, how many of them clearly, and which do not."""
    above = [cell for _, cell in pairs if _difference(cell) > 0]
    clear = [cell for cell in above if cell.estimate and cell.estimate.low > (cell.paper or 0.0)]
    below = [f"{column} ({_difference(cell):+.1f})" for column, cell in pairs if _difference(cell) <= 0]
    text = f"{len(above)} of {len(pairs)} figures above it, {len(clear)} of them with the whole interval"
    return text + (f"; not above: {'; '.join(below)}." if below else ".")


def _difference(cell: Cell) -> float:
    return cell.difference or 0.0
