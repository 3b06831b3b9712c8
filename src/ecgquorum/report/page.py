"""The report: one HTML page that opens offline, its figures inside it and beside it."""

import io
from pathlib import Path

import matplotlib as mpl
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from ecgquorum.atomic import write_atomically
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.figures import FIGURES

_PNG_DPI = 144


def write_report(card: Scorecard, out: str | Path) -> Path:
    """Write `report.html` and each figure as PNG and SVG to the folder `out`; returns the page's path."""
    out = Path(out)
    drawn: dict[str, str] = {}
    for name, draw in FIGURES.items():
        figure = draw(card)
        write_atomically(out / f"{name}.png", _rendered(figure, "png"))
        svg = _rendered(figure, "svg")
        write_atomically(out / f"{name}.svg", svg)
        text = svg.decode()
        drawn[name] = text[text.index("<svg") :]
    environment = Environment(
        loader=PackageLoader("ecgquorum.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template("page.html").render(card=card, figures=drawn)
    write_atomically(out / "report.html", page)
    return out / "report.html"


def _rendered(figure: Figure, kind: str) -> bytes:
    target = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "ecgquorum"}):  # the same figure gives the same bytes
        figure.savefig(target, format=kind, dpi=_PNG_DPI, facecolor="white", metadata=metadata)
    return target.getvalue()
