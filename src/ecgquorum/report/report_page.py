"""The report: one HTML page that opens offline, its figures and tables inside it and beside it."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.merge import merged
from ecgquorum.evaluation.scorecard import Scorecard, rows_csv
from ecgquorum.report.figure_style import inlined, rendered
from ecgquorum.report.figures import draw_figures
from ecgquorum.report.notes import notes_of
from ecgquorum.report.published_results import published_data
from ecgquorum.report.signs import masking_findings
from ecgquorum.report.table_formats import as_csv, as_latex, as_markdown
from ecgquorum.report.tables import tables_of
from ecgquorum.report.templates import template

_PNG_DPI = 144


def write_report(cards: Scorecard | Sequence[Scorecard], out: str | Path) -> Path:
    """Write `report.html`, `figures/` (PNG, SVG) and `tables/` (CSV, Markdown, LaTeX) to `out`; gives the page's path.

    Scorecards of the same recordings share their tables; others get a part of the page each.
    """
    out = Path(out)
    cards = [cards] if isinstance(cards, Scorecard) else list(cards)
    if not cards:
        raise ScorecardError("expected a scorecard to report, found none")
    if not all(card.answers for card in cards):
        raise ScorecardError(
            "expected scorecards with their answers, found one of rows only; give --out NAME.md instead"
        )
    for folder, endings in (("figures", ("png", "svg")), ("tables", ("csv", "md", "tex"))):
        for ending in endings:  # an earlier report's must not stand beside this one's page
            for earlier in (out / folder).glob(f"*.{ending}"):
                earlier.unlink()
    parts = []
    for number, card in enumerate(merged(cards)):
        mark = "" if number == 0 else f"{number + 1}_"
        tables = tables_of(card)
        for table in tables:
            for ending, text in (("csv", as_csv(table)), ("md", as_markdown(table)), ("tex", as_latex(table))):
                write_atomic(out / "tables" / f"{mark}{table.name}.{ending}", text)
        write_atomic(out / "tables" / f"{mark}all_rows.csv", rows_csv(card.rows))
        figures = {
            name: _written(figure, out / "figures" / f"{mark}{name}", f"{mark}{name}")
            for name, figure in draw_figures(card).items()
        }
        by_name = {table.name: table for table in tables}
        parts.append(
            {
                "card": card,
                "tables": by_name,
                "figures": figures,
                "paper": published_data(card.data.classes),
                "notes": notes_of(card),
                "signs": {one.name: masking_findings(card, one.name) for one in card.ensembles},
            }
        )
    write_atomic(out / "report.html", template("page.html").render(parts=parts))
    return out / "report.html"


def _written(figure: Figure, path: Path, name: str) -> str:
    """Write the figure as PNG and SVG; gives the SVG to put in a page, its inner names made its own."""
    write_atomic(path.with_suffix(".png"), rendered(figure, "png", _PNG_DPI))
    svg = rendered(figure, "svg", _PNG_DPI).decode()
    write_atomic(path.with_suffix(".svg"), svg)
    return inlined(svg, name)
