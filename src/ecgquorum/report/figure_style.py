"""How figures look: colours that colour-blind readers can tell apart, and never colour alone."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RIGHT, WRONG, QUIET = "#00704f", "#b83a00", "#555555"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_RC: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}


def look(number: int) -> dict[str, Any]:
    """Colour, marker and dashes of the ensemble of this number."""
    n = len(_COLOURS)
    return {
        "color": _COLOURS[number % n],
        "marker": _MARKERS[number % n],
        "linestyle": _DASHES[number // n % len(_DASHES)],
    }


def line_look(number: int) -> dict[str, Any]:
    """The same for curves of many points: dashes instead of markers."""
    return {"color": _COLOURS[number % len(_COLOURS)], "linestyle": _DASHES[number % len(_DASHES)]}


@contextmanager
def styled() -> Iterator[None]:
    """The house style."""
    with mpl.rc_context(_RC):
        yield


def panels(n: int, *, columns: int = 2, width: float = 4.3, height: float = 3.3) -> tuple[Figure, list[Axes]]:
    """A figure of `n` panels, at most so many beside each other."""
    columns = min(columns, n)
    rows = -(-n // columns)
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(n)]


_UNDATED = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}


def rendered(figure: Figure, kind: str, dpi: float) -> bytes:
    """The figure as PNG, SVG or PDF; the same figure gives the same bytes."""
    target = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ecgquorum"}):
        figure.savefig(target, format=kind, dpi=dpi, facecolor="white", metadata={_UNDATED[kind]: None})
    return target.getvalue()


def inlined(svg: str, name: str) -> str:
    """An SVG to put in a page, its inner names made its own by the figure's."""
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg[svg.index("<svg") :])
