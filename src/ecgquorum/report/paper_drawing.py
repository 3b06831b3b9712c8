"""Drawing on ECG paper, on axes whose units are millimetres."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike

from ecgquorum.report.ecg_paper import LARGE_MM, PULSE_MV, PULSE_S, SMALL_MM, STANDARD, Scale

INK = "#111111"
MM = 1 / 25.4
"""A millimetre in inches."""
_GRID = "#e8a9a0"
_THIN, _THICK, _TRACE = 0.2, 0.6, 0.8


def draw_grid(ax: Axes, x_mm: tuple[float, float], y_mm: tuple[float, float]) -> None:
    """Squares between these edges; thick lines at multiples of 5 mm of the axes."""
    for step, width in ((SMALL_MM, _THIN), (LARGE_MM, _THICK)):
        across, up = (np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step for low, high in (x_mm, y_mm))
        lines = [((x, y_mm[0]), (x, y_mm[1])) for x in across] + [((x_mm[0], y), (x_mm[1], y)) for y in up]
        ax.add_collection(LineCollection(lines, colors=_GRID, linewidths=width, zorder=1), autolim=False)


def draw_paper(ax: Axes, millivolts: list[float], rate_hz: float, height_mv: tuple[float, float]) -> None:
    """Draw a lead on paper of its own, around its median; the axes' size decides the true scale (`paper_size_mm`)."""
    width_mm, _ = paper_size_mm(len(millivolts) / rate_hz, height_mv)
    low, high = (STANDARD.mm_per_mv * edge for edge in height_mv)
    time_s = np.arange(len(millivolts)) / rate_hz
    known = np.asarray(millivolts)[np.isfinite(millivolts)]
    middle = float(np.median(known)) if len(known) else 0.0
    ax.set(xlim=(0, width_mm), ylim=(low, high))
    draw_grid(ax, (0, width_mm), (low, high))
    ax.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    for spine in ax.spines.values():
        spine.set_color(_GRID)
    draw_trace(ax, time_s, np.clip(np.asarray(millivolts) - middle, *height_mv), STANDARD)


def draw_trace(
    ax: Axes, time_s: ArrayLike, millivolts: ArrayLike, scale: Scale, origin_mm: tuple[float, float] = (0, 0)
) -> None:
    """Draw a trace from where 0 s and 0 mV are; a sample that is NaN leaves a gap."""
    x = origin_mm[0] + scale.mm_per_s * np.asarray(time_s)
    y = origin_mm[1] + scale.mm_per_mv * np.asarray(millivolts)
    ax.plot(x, y, color=INK, linewidth=_TRACE, solid_joinstyle="round", zorder=3)


def draw_pulse(ax: Axes, right_mm: float, baseline_mm: float, scale: Scale) -> None:
    """Draw the calibration pulse, 1 mV for 0.2 s, so that it ends here."""
    foot, width, height = 1.5, PULSE_S * scale.mm_per_s, PULSE_MV * scale.mm_per_mv
    left = right_mm - foot - width
    x = [left - foot, left, left, right_mm - foot, right_mm - foot, right_mm]
    y = baseline_mm + height * np.array([0, 0, 1, 1, 0, 0])
    ax.plot(x, y, color=INK, linewidth=_TRACE, solid_joinstyle="miter", zorder=3)


def paper_size_mm(seconds: float, height_mv: tuple[float, float]) -> tuple[float, float]:
    """Width and height of the paper for this stretch, at true scale."""
    return seconds * STANDARD.mm_per_s, (height_mv[1] - height_mv[0]) * STANDARD.mm_per_mv
