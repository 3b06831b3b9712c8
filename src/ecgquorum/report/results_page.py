"""The results page: scorecards as one Markdown page, with the paper's results and the check of its claims."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.comparisons import group_by_strategy
from ecgquorum.evaluation.conditions import CORRUPTION, OOD
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.claims import ClaimResult, check_claims
from ecgquorum.report.findings import is_simulated, list_notes
from ecgquorum.report.published_results import paper_data_set
from ecgquorum.report.report_table import ReportTable, TableCell
from ecgquorum.report.table_formats import to_markdown
from ecgquorum.report.tables import PAPER_METRICS, build_tables, name_row
from ecgquorum.report.templates import load_template

_OURS = "dec+part"


def write_results(cards: Sequence[Scorecard], path: str | Path, *, intro: str = "") -> Path:
    """Write the page to `path`: claims first, then tables; every scorecard must be of other recordings.

    intro: Markdown text for its beginning, such as your conclusions
    """
    if not cards:
        raise ScorecardError("there is no scorecard to report; pass at least one")
    if len({(card.data.data, card.data.part) for card in cards}) < len(cards):
        raise ScorecardError(
            "two scorecards are of the same recordings; merge them first with: "
            "ecgquorum report A.json B.json --out MERGED.json"
        )
    parts = []
    for card in cards:
        tables = build_tables(card)
        paper, beyond = check_claims(card)
        parts.append(
            {
                "card": card,
                "notes": list_notes(card),
                "in_setting": [one.name for one in card.ensembles if not one.deviations],
                "about_paper": _is_about_paper(card),
                "claims": [(claim, [_format_result(one) for one in claim.results]) for claim in paper],
                "beyond": [(claim, [_format_result(one) for one in claim.results]) for claim in beyond],
                "compared": list(_compare(card, tables)) if _is_about_paper(card) else [],
                "tables": [to_markdown(one).strip() for one in tables],
            }
        )
    path = Path(path)
    text = load_template("results.md.jinja").render(parts=parts, intro=intro.strip())
    write_atomic(path, re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n")
    return path


def _is_about_paper(card: Scorecard) -> bool:
    """Whether the paper's claims can be checked: on its data sets, unless corruptions were evaluated and no attacks."""
    shifted = any(condition.target in (CORRUPTION, OOD) for condition in card.conditions)
    attacked = any(condition.is_attack for condition in card.conditions)
    return not is_simulated(card) and paper_data_set(card.data.classes) is not None and (attacked or not shifted)


def _format_result(result: ClaimResult) -> dict[str, str]:
    """A claim at one strength, in per cent."""
    difference = result.difference.times(100)
    ours = (
        f"{100 * value:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")
        for value, spread in zip(result.ours, result.spreads, strict=True)
    )
    paper = ""
    if result.paper:
        better, worse = (100 * value for value in result.paper)
        paper = f"{better:.1f}, {worse:.1f}: {better - worse:+.1f}"
    return {
        "condition": result.condition + (f" ({result.note})" if result.note else ""),
        "paper": paper,
        "ours": ", ".join(ours),
        "difference": f"{difference.value:+.1f} ({difference.low:+.1f} to {difference.high:+.1f})",
        "n_records": str(result.n_records),
        "verdict": result.verdict,
    }


def _compare(card: Scorecard, tables: list[ReportTable]) -> Iterator[str]:
    """For each of the paper's metrics, compare our dec+part in the paper's setting with the paper's."""
    groups = group_by_strategy(card.ensembles)
    own = [name_row(one) for one in groups if one.facts.strategy == _OURS and not one.facts.deviations]
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
