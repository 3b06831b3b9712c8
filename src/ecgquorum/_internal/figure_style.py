"""Style of figures: colours that colour-blind readers can tell apart, and never colour alone."""

import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

CORRECT_COLOUR, ERROR_COLOUR, GREY = "#00704f", "#b83a00", "#555555"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_RC: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}
_DATE_FIELD = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}


def marker_style(number: int) -> dict[str, Any]:
    """Colour, marker and dashes of the series with this number."""
    n = len(_COLOURS)
    return {
        "color": _COLOURS[number % n],
        "marker": _MARKERS[number % n],
        "linestyle": _DASHES[number // n % len(_DASHES)],
    }


def line_style(number: int) -> dict[str, Any]:
    """The same for curves of many points: dashes instead of markers."""
    return {"color": _COLOURS[number % len(_COLOURS)], "linestyle": _DASHES[number % len(_DASHES)]}


def use_style() -> Any:
    """Context manager: draw in the style of ecgquorum while the block runs."""
    return mpl.rc_context(_RC)


def make_panels(n: int, *, columns: int = 2, width: float = 4.3, height: float = 3.3) -> tuple[Figure, list[Axes]]:
    """Make a figure of `n` panels with at most `columns` side by side; sizes in inches."""
    columns = min(columns, n)
    rows = -(-n // columns)
    layout = ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.08)
    figure = Figure(figsize=(columns * width, rows * height), layout=layout)
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(n)]


def render_figure(figure: Figure, kind: str, dpi: float) -> bytes:
    """Render the figure as "png", "svg" or "pdf"; the same figure gives the same bytes."""
    target = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ecgquorum"}):
        figure.savefig(target, format=kind, dpi=dpi, facecolor="white", metadata={_DATE_FIELD[kind]: None})
    return target.getvalue()


def inline_svg(svg: str, name: str) -> str:
    """Return the SVG element for an HTML page, with `name` before each of its ids so that figures do not collide."""
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg[svg.index("<svg") :])
