"""Figures of a search."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from ecgquorum._internal.figure_style import GREY, make_panels, marker_style, use_style
from ecgquorum.tuning.results import Trial, choose_trial, pareto_front, successful_trials
from ecgquorum.tuning.space import Choice, Parameter, Space, Value
from ecgquorum.tuning.trial import ATTACKED, NATURAL

_TITLES = {NATURAL: "natural", ATTACKED: "attacked"}
_STYLES = {NATURAL: marker_style(0), ATTACKED: marker_style(1)}
_GIVEN, _CHOSEN = marker_style(3), marker_style(2)
_JITTER = 0.18


def draw_search(trials: Sequence[Trial], space: Space, importances: dict[str, float]) -> dict[str, Figure]:
    """Draw every figure that the trials have data for, by name."""
    successful = successful_trials(trials)
    if not successful:
        return {}
    with use_style():
        figures = {
            "accuracies": _accuracies(successful),
            "history": _history(successful),
            "parameters": _parameters(successful, space),
        }
        if importances:
            figures["importances"] = _importances(importances)
    return figures


def _accuracies(trials: list[Trial]) -> Figure:
    """Plot both accuracies of every trial, the front, and the intervals of the given and of the chosen trial."""
    figure, (ax,) = make_panels(1, width=6.4, height=4.6)
    front, chosen = pareto_front(trials), choose_trial(trials)
    points = 100 * np.array([trial.accuracies for trial in trials])
    ax.scatter(points[:, 0], points[:, 1], s=26, facecolor="none", edgecolor=GREY, label="a trial")
    edge = 100 * np.array([trial.accuracies for trial in front])
    ax.plot(edge[:, 0], edge[:, 1], color="black", linewidth=1, drawstyle="steps-post")
    ax.scatter(edge[:, 0], edge[:, 1], s=30, color="black", label="beaten by none", zorder=3)
    if trials[0].number == 0:
        _plot_intervals(ax, trials[0], "as given", _GIVEN)
    if chosen is not None and chosen.number != 0:
        _plot_intervals(ax, chosen, f"chosen, trial {chosen.number}", _CHOSEN)
    for trial in front:
        natural, attacked = trial.accuracies
        ax.annotate(str(trial.number), (100 * natural, 100 * attacked), (5, 5), textcoords="offset points", fontsize=7)
    ax.set_xlabel("accuracy on natural recordings (%)")
    ax.set_ylabel("accuracy under attack (%)")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _plot_intervals(ax: Axes, trial: Trial, label: str, kind: dict[str, str]) -> None:
    """Plot a trial with the intervals of both of its accuracies."""
    x, y = trial.measures[NATURAL], trial.measures[ATTACKED]
    ax.errorbar(
        [100 * x.value],
        [100 * y.value],
        xerr=[[100 * (x.value - x.low)], [100 * (x.high - x.value)]],
        yerr=[[100 * (y.value - y.low)], [100 * (y.high - y.value)]],
        color=kind["color"],
        marker=kind["marker"],
        markersize=8,
        linewidth=1,
        capsize=3,
        linestyle="none",
        zorder=4,
        label=f"{label} (95 % intervals)",
    )


def _history(trials: list[Trial]) -> Figure:
    """Plot each accuracy trial by trial, and the best so far."""
    figure, axes = make_panels(2, width=4.6, height=2.9)
    for ax, measure in zip(axes, (NATURAL, ATTACKED), strict=True):
        numbers = [trial.number for trial in trials]
        values = np.array([100 * trial.measures[measure].value for trial in trials])
        kind = _STYLES[measure]
        ax.scatter(numbers, values, s=22, color=kind["color"], marker=kind["marker"])
        ax.step(numbers, np.maximum.accumulate(values), where="post", color=GREY, linewidth=1, label="best so far")
        ax.set(title=_TITLES[measure], xlabel="trial", ylabel="accuracy (%)")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].legend(frameon=False, fontsize=7)
    return figure


def _parameters(trials: list[Trial], space: Space) -> Figure:
    """Plot both accuracies against each parameter; the dashed line is the given recipe."""
    given = space.values_of(space.given)
    shown = [p for p in space.parameters if any(p.name in trial.values for trial in trials)]
    figure, axes = make_panels(len(shown), columns=3, width=3.2, height=2.5)
    for place, (ax, parameter) in enumerate(zip(axes, shown, strict=True)):
        with_it = [trial for trial in trials if parameter.name in trial.values]
        for measure in (NATURAL, ATTACKED):
            x = _positions(parameter, [trial.values[parameter.name] for trial in with_it])
            kind = _STYLES[measure]
            ax.scatter(
                x + _spread(parameter, len(x)),
                [100 * trial.measures[measure].value for trial in with_it],
                s=16,
                color=kind["color"],
                marker=kind["marker"],
                alpha=0.75,
                linewidth=0,
                label=_TITLES[measure],
            )
        if parameter.name in given:
            ax.axvline(
                _positions(parameter, [given[parameter.name]])[0], color=GREY, linewidth=0.8, linestyle="--", zorder=0
            )
        _scale(ax, parameter)
        ax.set_xlabel(parameter.name)
        if place % 3 == 0:
            ax.set_ylabel("accuracy (%)")
        if place:
            ax.sharey(axes[0])
    axes[0].legend(frameon=False, fontsize=7)
    return figure


def _positions(parameter: Parameter, values: list[Value]) -> np.ndarray:
    kind = parameter.kind
    return np.array([kind.options.index(v) if isinstance(kind, Choice) else float(v) for v in values])


def _spread(parameter: Parameter, n: int) -> np.ndarray:
    """Return offsets that put points of the same choice side by side."""
    return np.linspace(-_JITTER, _JITTER, n) if isinstance(parameter.kind, Choice) else np.zeros(n)


def _scale(ax: Axes, parameter: Parameter) -> None:
    kind = parameter.kind
    if isinstance(kind, Choice):
        words = ["yes" if option is True else "no" if option is False else str(option) for option in kind.options]
        ax.set_xticks(range(len(words)), words)
        ax.set_xlim(-0.5, len(words) - 0.5)
        return
    if kind.log:
        ax.set_xscale("log")
        ticks = _round_numbers(kind.low, kind.high)
        ax.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
    margin = (kind.high / kind.low) ** 0.05 if kind.log else 0.05 * (kind.high - kind.low)
    low, high = (kind.low / margin, kind.high * margin) if kind.log else (kind.low - margin, kind.high + margin)
    if low < high:
        ax.set_xlim(low, high)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten in the range, fewer in a wide range; its ends and middle if it has none."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    steps = (1, 2, 5) if high / low < 50 else (1, 3)
    inside = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
    return inside if len(inside) > 1 else [low, (low * high) ** 0.5, high]


def _importances(importances: dict[str, float]) -> Figure:
    figure, (ax,) = make_panels(1, width=6.0, height=0.6 + 0.26 * len(importances))
    names = list(importances)[::-1]
    ax.barh(names, [importances[name] for name in names], color=marker_style(0)["color"])
    ax.set_xlabel("importance, as a share of all")
    return figure
