"""Figures about corruptions and recordings out of distribution, each drawn from a scorecard alone."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ecgquorum._internal.figure_style import GREY, make_panels
from ecgquorum.evaluation.conditions import CORRUPTION, NATURAL, OOD
from ecgquorum.evaluation.plot import plot_families
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.paper_drawing import MM, draw_paper, paper_size_mm
from ecgquorum.report.shift_tables import list_families

_HEIGHT_MV, _SECONDS = (-1.2, 1.6), 4.0
_COLUMNS, _TITLE_MM, _GAP_MM = 3, 6.0, 4.0


def corruptions_figure(card: Scorecard) -> Figure | None:
    """Accuracy against the severity of each corruption, with intervals."""
    families = [(name, CORRUPTION) for name in list_families(card, CORRUPTION)]
    return plot_families(card, "accuracy", families, "accuracy (%)") if families else None


def corruption_deferral_figure(card: Scorecard) -> Figure | None:
    """The share of recordings above the threshold that defers 10 % of natural ones, by the risk."""
    families = [(name, CORRUPTION) for name in list_families(card, CORRUPTION)]
    if not families:
        return None
    return plot_families(card, "deferred_at_10", families, "deferred (%)", detail="risk")


def heat_map_figure(card: Scorecard) -> Figure | None:
    """Accuracy that each corruption costs at each severity, one panel for each ensemble."""
    families = list_families(card, CORRUPTION)
    if not families:
        return None
    severities = sorted({severity for several in families.values() for severity in several})
    figure, axes = make_panels(len(card.ensembles), columns=3, width=4.6, height=1.2 + 0.27 * len(families))
    for e, (ax, one) in enumerate(zip(axes, card.ensembles, strict=True)):
        lost = np.full((len(families), len(severities)), np.nan)
        for c, condition in enumerate(card.conditions):
            if condition.target == CORRUPTION and (e, c) in card.predictions:
                natural = card.predictions[e, 0].at(card.records[c]).correct.mean()
                place = list(families).index(condition.attack), severities.index(condition.epsilon)
                lost[place] = 100 * (natural - card.predictions[e, c].correct.mean())
        _draw_matrix(ax, lost, (0.0, 60.0), "Reds")
        ax.set(title=one.name, xlabel="severity", ylabel="corruption")
        ax.set_xticks(range(len(severities)), [f"{severity:g}" for severity in severities])
        ax.set_yticks(range(len(families)), list(families) if e % 3 == 0 else [""] * len(families))
    return figure


def ood_figure(card: Scorecard) -> Figure | None:
    """AUROC of each score for each set out of distribution, one panel for each ensemble."""
    sets = list(list_families(card, OOD))
    if not sets:
        return None
    scores = list(dict.fromkeys(row.detail for row in card.find(metric="ood_auroc") if row.estimate))
    figure, axes = make_panels(len(card.ensembles), columns=3, width=5.4, height=1.9 + 0.27 * len(sets))
    for e, (ax, one) in enumerate(zip(axes, card.ensembles, strict=True)):
        found = [
            [card.estimate(ensemble=one.name, attack=name, metric="ood_auroc", detail=score) for score in scores]
            for name in sets
        ]
        matrix = np.array([[np.nan if cell is None else 100 * cell.value for cell in row] for row in found])
        _draw_matrix(ax, matrix, (0.0, 100.0), "RdBu")
        ax.set(title=one.name, xlabel="score", ylabel="set out of distribution")
        ax.set_xticks(range(len(scores)), [score.replace("_", " ") for score in scores], rotation=35, ha="right")
        ax.set_yticks(range(len(sets)), sets if e % 3 == 0 else [""] * len(sets))
    return figure


def corruption_examples_figure(card: Scorecard) -> Figure | None:
    """The first example on ECG paper: natural, under each corruption, and what stands for it out of distribution."""
    shifted = {c for c, condition in enumerate(card.conditions) if condition.target in (CORRUPTION, OOD)}
    example = next((one for one in card.examples if shifted & one.attacked.keys()), None)
    if example is None:
        return None
    numbers = sorted(shifted & example.attacked.keys())
    n_samples = round(_SECONDS * example.rate_hz)
    width_mm, height_mm = paper_size_mm(min(n_samples, len(example.natural)) / example.rate_hz, _HEIGHT_MV)
    shown = [0, *numbers]
    n_rows = -(-len(shown) // _COLUMNS)
    total_w = _COLUMNS * (width_mm + _GAP_MM) + _GAP_MM
    total_h = n_rows * (height_mm + _TITLE_MM) + _GAP_MM
    figure = Figure(figsize=(total_w * MM, total_h * MM))
    for place, number in enumerate(shown):
        row, column = divmod(place, _COLUMNS)
        left, bottom = _GAP_MM + column * (width_mm + _GAP_MM), total_h - (row + 1) * (height_mm + _TITLE_MM)
        ax = figure.add_axes((left / total_w, bottom / total_h, width_mm / total_w, height_mm / total_h))
        signal = example.attacked[number] if number else example.natural
        draw_paper(ax, signal[:n_samples].tolist(), example.rate_hz, _HEIGHT_MV)
        label = f"{NATURAL}: {example.id}, lead {example.lead}" if number == 0 else str(card.conditions[number])
        ax.set_title(label, loc="left", fontsize=8, pad=2)
    return figure


def _draw_matrix(ax: Axes, matrix: NDArray[np.float64], limits: tuple[float, float], colours: str) -> None:
    """Draw numbers on coloured cells; a cell without a value stays empty."""
    ax.imshow(matrix, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    middle, reach = sum(limits) / 2, (limits[1] - limits[0]) / 2
    for (row, column), value in np.ndenumerate(matrix):
        if np.isfinite(value):
            away = (value - middle) / reach
            dark = abs(away) > 0.75 if colours == "RdBu" else away > 0.2
            ax.text(
                column, row, f"{value:.0f}", ha="center", va="center", fontsize=7, color="white" if dark else "#222222"
            )
    for spine in ax.spines.values():
        spine.set_color(GREY)
    ax.tick_params(length=0)
