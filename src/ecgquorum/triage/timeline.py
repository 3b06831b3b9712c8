"""A picture of a long recording: class, probability and risk of each of its windows over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ecgquorum._internal.figure_style import ERROR_COLOUR, GREY, line_style, make_panels, use_style
from ecgquorum.ensemble.result import Result
from ecgquorum.errors import DrawingError

_HOUR_S, _MINUTE_S = 3600.0, 60.0


def plot_timeline(result: Result, classes: Sequence[str] = ()) -> Figure:
    """Draw the windows of a recording: one row for each class, and below it probability and risk.

    classes: rows, from the top; by default those of the result's probabilities that a window has
    """
    if len(result.windows) < 2:
        raise DrawingError(f"{result.id}: a timeline needs several windows, found {len(result.windows)}")
    labels = [window.label for window in result.windows]
    rows = [name for name in classes or result.probabilities if name in labels or name in classes]
    rows += sorted(set(labels) - set(rows))
    unit, divisor = ("h", _HOUR_S) if (result.seconds or 0) > 2 * _HOUR_S else ("min", _MINUTE_S)
    starts = np.array([window.start_s for window in result.windows]) / divisor
    ends = starts + np.array([window.seconds for window in result.windows]) / divisor
    with use_style():
        figure, (upper, lower) = make_panels(2, columns=1, width=9.0, height=0.9 + 0.2 * len(rows))
        _draw_classes(upper, result, rows, starts, ends)
        _draw_scores(lower, result, (starts + ends) / 2)
        lower.set_xlabel(f"time ({unit})")
        for ax in (upper, lower):
            ax.set_xlim(0, float(ends.max()))
        title = f"{result.id}: {len(labels)} windows of {result.windows[0].seconds:g} s; the mean says {result.label}"
        figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def _draw_classes(ax: Axes, result: Result, rows: list[str], starts: np.ndarray, ends: np.ndarray) -> None:
    labels = np.array([window.label for window in result.windows])
    for number, name in enumerate(rows):
        chosen = labels == name
        spans = list(zip(starts[chosen], (ends - starts)[chosen], strict=True))
        colour = ERROR_COLOUR if name == result.urgent_class else line_style(number)["color"]
        ax.broken_barh(spans, (len(rows) - number - 1.35, 0.7), facecolors=colour)
    shares = [f"{name}  {100 * float((labels == name).mean()):.0f} %" for name in rows]
    ax.set_yticks(range(len(rows) - 1, -1, -1), shares)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    worst = result.worst_window
    if worst is not None:
        index = result.windows.index(worst)
        ax.axvline(float(starts[index] + ends[index]) / 2, color="black", linewidth=0.8, linestyle=":")


def _draw_scores(ax: Axes, result: Result, middle: np.ndarray) -> None:
    probability = [window.probability for window in result.windows]
    risk = [window.risk for window in result.windows]
    ax.plot(middle, np.array(probability, dtype=float), color=GREY, linewidth=1, label="probability of its class")
    ax.plot(middle, np.array(risk, dtype=float), linewidth=1, label="risk", **line_style(1))
    ax.set_ylim(0, 1.02)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
