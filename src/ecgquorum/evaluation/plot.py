"""A metric against the strength of each attack, drawn from a scorecard."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ecgquorum._internal.figure_style import GREY, make_panels, marker_style, use_style
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.conditions import (
    CORRUPTION,
    ENSEMBLE,
    MASKING,
    MEMBERS,
    MIXED,
    NATURAL,
    OOD,
    SHARED_WORST,
    WORST_KINDS,
)
from ecgquorum.evaluation.metric_values import metric_values
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.metrics import Estimate, Labels


def plot_metric(card: Scorecard, metric: str = "accuracy", label: str = "", *, worst: bool = True) -> Figure:
    """Draw one panel for each attack, with 95 % intervals as bands; without attacks, for each corruption.

    Without either, there is one bar for each ensemble.

    label: of the vertical axis · worst: whether to add a panel with the worst of all attacks
    """
    without = (MEMBERS, OOD)
    rows = [row for row in card.find(metric=metric, detail="") if row.estimate and row.target not in without]
    if not rows:
        raise ScorecardError(f"the scorecard has no metric {metric!r} to draw")
    label = label or f"{metric} (%)"
    attacks = [row for row in rows if row.attack not in (NATURAL, MASKING) and not row.attack.startswith(MIXED)]
    attacks = [row for row in attacks if row.target != CORRUPTION] or [row for row in attacks if row.epsilon]
    families = list(
        dict.fromkeys((row.attack, row.target) for row in attacks if worst or row.attack not in WORST_KINDS)
    )
    with use_style():
        return plot_families(card, metric, families, label) if families else _plot_natural(card, metric, label)


def plot_families(
    card: Scorecard, metric: str, families: list[tuple[str, str]], label: str, *, detail: str = ""
) -> Figure:
    """Draw a metric against the strength, one panel for each attack or corruption: its name and target."""
    small = len(families) > 9
    columns, width, height = (5, 2.9, 2.2) if small else (3, 4.3, 3.3)
    figure, axes = make_panels(len(families), columns=columns, width=width, height=height)
    for ax, family in zip(axes, families, strict=True):
        _plot_family(ax, card, metric, family, detail)
        ax.set_ylabel(label)
    add_legend(axes)
    return figure


def _plot_natural(card: Scorecard, metric: str, label: str) -> Figure:
    figure, (ax,) = make_panels(1)
    for e, one in enumerate(card.ensembles):
        found = card.estimate(ensemble=one.name, attack=NATURAL, target="", metric=metric, detail="")
        if found:
            value = found.times(100)
            spread = [[max(0.0, value.value - value.low)], [max(0.0, value.high - value.value)]]
            ax.bar(e, value.value, yerr=spread, color=marker_style(e)["color"], capsize=3)
    ax.set_xticks(range(len(card.ensembles)), [one.name for one in card.ensembles])
    ax.set_xlabel("natural recordings")
    ax.set_ylabel(label)
    return figure


def _plot_family(ax: Axes, card: Scorecard, metric: str, family: tuple[str, str], detail: str = "") -> None:
    attack, target = family
    for e, one in enumerate(card.ensembles):
        rows = sorted(
            card.find(ensemble=one.name, attack=attack, target=target, metric=metric, detail=detail),
            key=lambda row: row.epsilon,
        )
        positions = find_records(card, attack, target, e)
        values = [_natural_value(card, e, metric, positions, detail) if rows else None, *(row.estimate for row in rows)]
        draw_band(ax, [0.0, *(row.epsilon for row in rows)], values, e, one.name, scale=100.0)
    if target == CORRUPTION:
        ax.set_title(attack)
        ax.set_xlabel("severity")
        ax.set_xticks(range(6))
        ax.set_xlim(0, 5.1)
        ax.set_ylim(-2, 102)
        return
    on = "" if attack in WORST_KINDS else f" on the {target}" if target == ENSEMBLE else f" on {target}"
    counts = sorted({row.n_records for row in card.find(attack=attack, target=target, metric=metric, detail="")})
    ax.set_title(f"{attack}{on}  (n = {' or '.join(map(str, counts))})")
    ax.set_xlabel(f"strength ε ({card.data.unit})")
    ax.axhline(0, color=GREY, linewidth=0.5)
    ax.set_xlim(left=0)
    if metric == "accuracy":
        ax.set_ylim(-2, 102)


def find_records(card: Scorecard, attack: str, target: str, e: int) -> Labels:
    """The recordings of an ensemble that an attack covers; the worst of several covers those that all of them cover."""
    if not card.records:
        return np.zeros(0, dtype=np.int64)
    needed = range(len(card.ensembles)) if attack == SHARED_WORST else (e,)
    covered = card.records[0]
    for c, condition in enumerate(card.conditions):
        included = attack in WORST_KINDS and all((i, c) in card.predictions for i in needed)
        if included or (condition.attack, condition.target) == (attack, target):
            covered = np.intersect1d(covered, card.records[c])
    return covered


def _natural_value(card: Scorecard, e: int, metric: str, positions: Labels, detail: str) -> Estimate | None:
    """The metric on these recordings when they are natural; on all, where it is one of a score."""
    if len(positions) in (0, card.data.n_records) or detail:
        return card.estimate(ensemble=card.ensembles[e].name, attack=NATURAL, target="", metric=metric, detail=detail)
    some = card.predictions[e, 0].at(positions)
    values = metric_values(some, card.data.classes, only=metric, normalise=card.evaluation["normalise"])
    found = next((value.estimate for value in values if not value.detail), None)
    return found if found and found.is_defined else None


def draw_band(
    ax: Axes, x: list[float] | list[int], values: list[Estimate | None], number: int, label: str, *, scale: float
) -> None:
    """Draw a line through the values and their intervals as a band, in the style of the series `number`."""
    known = [(at, value.times(scale)) for at, value in zip(x, values, strict=True) if value is not None]
    if not known:
        return
    places = [at for at, _ in known]
    style = marker_style(number)
    ax.plot(places, [value.value for _, value in known], label=label, markersize=4, **style)
    low, high = [value.low for _, value in known], [value.high for _, value in known]
    ax.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0)


def add_legend(axes: list[Axes]) -> None:
    """Add a legend to the first panel that has something in it."""
    drawn = [ax for ax in axes if ax.get_legend_handles_labels()[0]]
    if drawn:
        drawn[0].legend(frameon=False, fontsize=7)
