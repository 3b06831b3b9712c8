"""ECG paper: 25 mm/s and 10 mm/mV, on a grid of millimetres."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

MM_PER_S, MM_PER_MV = 25.0, 10.0
_GRID = "#e8a9a0"


def draw_paper(ax: Axes, millivolts: list[float], rate_hz: float, height_mv: tuple[float, float]) -> None:
    """Draw a lead on paper; the axes' size decides the true scale (see `paper_size_mm`)."""
    time = np.arange(len(millivolts)) / rate_hz
    middle = float(np.median(millivolts))
    ax.set_xlim(0, len(millivolts) / rate_hz)
    ax.set_ylim(*height_mv)
    ax.xaxis.set_major_locator(MultipleLocator(0.2))
    ax.xaxis.set_minor_locator(MultipleLocator(0.04))
    ax.yaxis.set_major_locator(MultipleLocator(0.5))
    ax.yaxis.set_minor_locator(MultipleLocator(0.1))
    ax.grid(which="major", color=_GRID, linewidth=0.6)
    ax.grid(which="minor", color=_GRID, linewidth=0.2)
    ax.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    for spine in ax.spines.values():
        spine.set_color(_GRID)
    ax.plot(time, np.clip(np.asarray(millivolts) - middle, *height_mv), color="#111111", linewidth=0.8)


def paper_size_mm(seconds: float, height_mv: tuple[float, float]) -> tuple[float, float]:
    """Width and height of the paper for this stretch, at true scale."""
    return seconds * MM_PER_S, (height_mv[1] - height_mv[0]) * MM_PER_MV
