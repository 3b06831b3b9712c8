"""The report: one HTML page that opens offline, with its figures and tables as files beside it."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.figure_style import inline_svg, render_figure
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.merge import merge_scorecards
from ecgquorum.evaluation.metric_rows import rows_to_csv
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.figures import draw_figures
from ecgquorum.report.findings import describe_normalisation, list_notes, masking_findings
from ecgquorum.report.published_results import paper_data_set
from ecgquorum.report.table_formats import to_csv, to_latex, to_markdown
from ecgquorum.report.tables import build_tables
from ecgquorum.report.templates import load_template

_PNG_DPI = 144


def write_report(cards: Scorecard | Sequence[Scorecard], out: str | Path) -> Path:
    """Write `report.html`, `figures/` (PNG, SVG) and `tables/` (CSV, Markdown, LaTeX) to `out`; return the page's path.

    Scorecards of the same recordings share their tables; others get a part of the page each.
    """
    out = Path(out)
    cards = [cards] if isinstance(cards, Scorecard) else list(cards)
    if not cards:
        raise ScorecardError("there is no scorecard to report; pass at least one")
    if not all(card.predictions for card in cards):
        raise ScorecardError("a scorecard of rows only cannot be drawn; load it with its NAME.npz, or write NAME.md")
    for folder, endings in (("figures", ("png", "svg")), ("tables", ("csv", "md", "tex"))):
        for ending in endings:  # of an earlier report, which this page would not match
            for earlier in (out / folder).glob(f"*.{ending}"):
                earlier.unlink()
    parts = []
    for number, card in enumerate(merge_scorecards(cards)):
        mark = "" if number == 0 else f"{number + 1}_"
        tables = build_tables(card)
        for table in tables:
            for ending, text in (("csv", to_csv(table)), ("md", to_markdown(table)), ("tex", to_latex(table))):
                write_atomic(out / "tables" / f"{mark}{table.name}.{ending}", text)
        write_atomic(out / "tables" / f"{mark}all_rows.csv", rows_to_csv(card.rows))
        figures = {
            name: _write_figure(figure, out / "figures" / f"{mark}{name}", f"{mark}{name}")
            for name, figure in draw_figures(card).items()
        }
        by_name = {table.name: table for table in tables}
        parts.append(
            {
                "card": card,
                "tables": by_name,
                "figures": figures,
                "paper": paper_data_set(card.data.classes),
                "notes": list_notes(card),
                "normalisation": describe_normalisation(card),
                "masking": {one.name: masking_findings(card, one.name) for one in card.ensembles},
            }
        )
    write_atomic(out / "report.html", load_template("report.html").render(parts=parts))
    return out / "report.html"


def _write_figure(figure: Figure, path: Path, name: str) -> str:
    """Write the figure as PNG and SVG; return the SVG for the page."""
    write_atomic(path.with_suffix(".png"), render_figure(figure, "png", _PNG_DPI))
    figure.set_layout_engine(None)  # the positions of the first rendering are kept: finding them takes as long again
    svg = render_figure(figure, "svg", _PNG_DPI).decode()
    write_atomic(path.with_suffix(".svg"), svg)
    return inline_svg(svg, name)
