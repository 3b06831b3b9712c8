"""The figures of a report, each drawn from a scorecard alone; colours that colour-blind readers can tell apart."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.paper import MM_PER_MV, MM_PER_S, draw_paper, paper_size_mm

RIGHT, WRONG, QUIET = "#00704f", "#b83a00", "#555555"
_HEIGHT_MV = (-0.8, 1.2)
_MM = 1 / 25.4
_STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def examples_figure(card: Scorecard) -> Figure:
    """Recordings on ECG paper with the ensemble's answer and its uncertainty; green where right, red where wrong."""
    n = len(card.examples)
    seconds = max(len(e.millivolts) / e.rate_hz for e in card.examples)
    width_mm, height_mm = paper_size_mm(seconds, _HEIGHT_MV)
    columns = 2
    rows = -(-n // columns)
    title_mm, gap_mm = 9.0, 6.0
    total_w, total_h = columns * width_mm + (columns + 1) * gap_mm, rows * (height_mm + title_mm) + gap_mm
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(total_w * _MM, total_h * _MM))
        for number, example in enumerate(card.examples):
            row, column = divmod(number, columns)
            left = gap_mm + column * (width_mm + gap_mm)
            bottom = total_h - (row + 1) * (height_mm + title_mm)
            ax = figure.add_axes((left / total_w, bottom / total_h, width_mm / total_w, height_mm / total_h))
            draw_paper(ax, example.millivolts, example.rate_hz, _HEIGHT_MV)
            right = example.answer == example.truth
            ax.set_title(
                f"{'✓' if right else '✗'} {example.answer}  p {example.probability:.2f}  "
                f"uncertainty {example.uncertainty:.2f}" + ("" if right else f"   (is {example.truth})"),
                loc="left",
                color=RIGHT if right else WRONG,
                fontsize=9,
                fontweight="bold",
                pad=3,
            )
            ax.set_title(example.id, loc="right", color=QUIET, fontsize=7, pad=3)
        lead = card.examples[0].lead
        figure.text(
            gap_mm / total_w,
            1.5 / total_h,
            f"lead {lead}, {MM_PER_S:g} mm/s, {MM_PER_MV:g} mm/mV, first {seconds:g} s",
            fontsize=7,
            color=QUIET,
        )
    return figure


def deferral_figure(card: Scorecard) -> Figure:
    """Errors left against the share that is left to the ensemble, beside what deferring at random would leave."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.6, 3.4), layout="constrained")
        ax = figure.add_subplot()
        kept, errors = 100 * np.array(card.kept), 100 * np.array(card.errors_left)
        ax.plot(kept, kept / 100 * errors[-1], color=QUIET, linestyle="--", label="people read a random share")
        ax.plot(kept, errors, color="#0b5fa5", linewidth=2, label="people read the most uncertain")
        ax.set_xlabel("recordings left to the ensemble (%)")
        ax.set_ylabel("errors left (% of all recordings)")
        ax.set_xlim(0, 100)
        ax.set_ylim(0, max(1.0, errors[-1] * 1.1))
        ax.legend(frameon=False)
    return figure


def uncertainty_figure(card: Scorecard) -> Figure:
    """How uncertain the ensemble was where it was right, and where it was wrong."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.6, 3.4), layout="constrained")
        ax = figure.add_subplot()
        values = [*card.uncertainty_right, *card.uncertainty_wrong]
        edges = np.linspace(min(0.0, *values), max(1.0, *values), 26).tolist()
        parts = ((card.uncertainty_right, RIGHT, "right"), (card.uncertainty_wrong, WRONG, "wrong"))
        for part, colour, name in parts:
            if part:
                weights = np.full(len(part), 100 / len(part))
                ax.hist(
                    part,
                    edges,
                    weights=weights,
                    histtype="step",
                    color=colour,
                    linewidth=2,
                    label=f"{name} ({len(part)})",
                )
        ax.set_xlabel("normalised uncertainty (1 = the most in training)")
        ax.set_ylabel("recordings (% of their kind)")
        ax.legend(frameon=False)
    return figure


def confusion_figure(card: Scorecard) -> Figure:
    """Counts of what is against what was said, shaded by the share of each true class."""
    counts = np.array(card.confusion)
    share = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    size = 1.6 + 0.5 * len(card.classes)
    with mpl.rc_context({**_STYLE, "axes.spines.left": False, "axes.spines.bottom": False}):
        figure = Figure(figsize=(size + 0.8, size), layout="constrained")
        ax = figure.add_subplot()
        ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if share[row, column] > 0.55 else "#222222"
            ax.text(column, row, str(count), ha="center", va="center", color=colour)
        ax.set_xticks(range(len(card.classes)), card.classes)
        ax.set_yticks(range(len(card.classes)), card.classes)
        ax.set_xlabel("the ensemble says (recordings)")
        ax.set_ylabel("the label is")
    return figure


FIGURES = {
    "examples": examples_figure,
    "deferral": deferral_figure,
    "uncertainty": uncertainty_figure,
    "confusion": confusion_figure,
}
"""Every figure of a report by its file name."""
