"""The results page: scorecards as one Markdown page, with the paper's results and the check of its claims."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.recipes import without_hardening
from ecgquorum.report.findings import check_claims, is_simulated, list_notes
from ecgquorum.report.table_formats import to_markdown
from ecgquorum.report.tables import PAPER_METRICS, ReportTable, TableCell, build_tables
from ecgquorum.report.templates import load_template

_OURS = "dec+part"


def write_results(cards: Sequence[Scorecard], path: str | Path) -> Path:
    """Write the page to `path`; every scorecard must be of other recordings."""
    if not cards:
        raise ScorecardError("there is no scorecard to report; pass at least one")
    if len({(card.data.data, card.data.part) for card in cards}) < len(cards):
        raise ScorecardError(
            "two scorecards are of the same recordings, which a Markdown page cannot merge; write the report to a "
            "folder, or evaluate the ensembles together"
        )
    parts = []
    for card in cards:
        tables = build_tables(card)
        compared = [] if is_simulated(card) else list(_compare(card, tables))
        parts.append(
            (card, list_notes(card), list(check_claims(card)), compared, [to_markdown(one).strip() for one in tables])
        )
    path = Path(path)
    text = load_template("results.md.jinja").render(parts=parts)
    write_atomic(path, re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n")
    return path


def _compare(card: Scorecard, tables: list[ReportTable]) -> Iterator[str]:
    """For each of the paper's metrics, compare our dec+part with the paper's."""
    own = [one.name for one in card.ensembles if one.strategy and without_hardening(one.strategy) == _OURS]
    for table in tables:
        for name, cells in table.rows:
            pairs = [
                (" ".join(filter(None, column)), cell)
                for column, cell in zip(table.columns, cells, strict=True)
                if cell.paper is not None and cell.estimate
            ]
            if name in own and table.name in PAPER_METRICS and pairs:
                also = f" of {name}" if len(own) > 1 else ""
                yield f"{PAPER_METRICS[table.name].partition(' (')[0]}{also}: {_count_above(pairs)}"


def _count_above(pairs: list[tuple[str, TableCell]]) -> str:
    """Count the results above the paper's and those above it with their whole interval; list the others."""
    above = [cell for _, cell in pairs if _difference(cell) > 0]
    clear = [cell for cell in above if cell.estimate and cell.estimate.low > (cell.paper or 0.0)]
    below = [f"{column} ({_difference(cell):+.1f})" for column, cell in pairs if _difference(cell) <= 0]
    text = f"{len(above)} of {len(pairs)} results above the paper's, {len(clear)} of them with the whole interval"
    return text + (f"; not above: {'; '.join(below)}." if below else ".")


def _difference(cell: TableCell) -> float:
    return cell.difference or 0.0
