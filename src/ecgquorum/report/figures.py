"""The figures of a report, each drawn from a scorecard alone."""

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ecgquorum.evaluation.conditions import MASKING, MEMBERS, MIXED, NATURAL, WORST, mixtures
from ecgquorum.evaluation.mixed_conditions import assignments, mixed_deferral_curve
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.metrics import measures
from ecgquorum.metrics.measures import Estimate, bootstrap
from ecgquorum.report.example_figure import examples_figure
from ecgquorum.report.figure_style import QUIET, line_look, look, panels, styled

_MIDDLE = 1  # which strength stands for attacks in figures that show one: the second


def accuracy_figure(card: Scorecard) -> Figure | None:
    """Accuracy against the strength of each attack, with intervals."""
    return _against_epsilon(card, "accuracy", "accuracy (%)", worst=True)


def gap_figure(card: Scorecard) -> Figure | None:
    """Delta I_norm against the strength of each attack, with intervals."""
    return _against_epsilon(card, "delta_i_norm", "Δ I_norm (× 100), wrong less right", worst=False)


def deferral_figure(card: Scorecard) -> Figure | None:
    """Errors left against the share of recordings left to the ensemble, natural and mixed."""
    if all(one.members == 1 for one in card.ensembles):
        return None
    kinds: list[tuple[str, str, tuple[int, ...]]] = [
        (NATURAL, "", ()),
        *((f"{MIXED} {attack}", target, numbers) for attack, target, numbers in mixtures(card.conditions)),
    ]
    assigned = assignments(card.data.n_records, int(card.evaluation["seed"]))
    figure, axes = panels(len(kinds), columns=3)
    for ax, (attack, target, numbers) in zip(axes, kinds, strict=True):
        highest = 1.0
        for e, one in enumerate(card.ensembles):
            if one.members == 1 or not all((e, c) in card.answers for c in (0, *numbers)):
                continue
            strengths = [card.answers[e, c] for c in (0, *numbers)]
            if numbers:
                kept, errors = mixed_deferral_curve(strengths, assigned)
            else:
                kept, errors = measures.deferral_curve(~strengths[0].right, strengths[0].uncertainty)
            area = card.estimate(ensemble=one.name, attack=attack, target=target, measure="deferral_auc")
            ax.plot(100 * kept, 100 * errors, label=_with_area(one.name, area), **line_look(e))
            ax.plot([0, 100], [0, 100 * errors[-1]], color=QUIET, linewidth=0.6, linestyle=":")
            highest = max(highest, 100 * errors[-1])
        ax.set(title=f"{attack}, {target}".rstrip(", "), xlim=(0, 100), ylim=(0, 1.05 * highest))
        ax.set_xlabel("recordings left to the ensemble (%)")
        ax.set_ylabel("errors left (% of all recordings)")
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize=7, title="area (95 % interval)", title_fontsize=7)
    return figure


def thresholds_figure(card: Scorecard) -> Figure | None:
    """R_cc, R_iu and UA against the threshold of uncertainty, natural and attacked."""
    if all(one.members == 1 for one in card.ensembles):
        return None
    curves: dict[str, Callable[..., measures.Array]] = {
        "R_cc, correct when certain (%)": measures.correct_certain_ratio,
        "R_iu, uncertain when wrong (%)": measures.incorrect_uncertain_ratio,
        "UA, uncertainty accuracy (%)": measures.uncertainty_accuracy,
    }
    numbers = [0, *_middle_conditions(card)]
    figure, axes = panels(len(curves) * len(numbers), columns=len(curves), width=3.4, height=2.8)
    for place, ax in enumerate(axes):
        number, (name, curve) = numbers[place // len(curves)], list(curves.items())[place % len(curves)]
        for e, one in enumerate(card.ensembles):
            if one.members > 1 and (e, number) in card.answers:
                said = card.answers[e, number]
                values = curve(said.right, said.uncertainty, np.ones((1, len(said.truth))))[0]
                ax.plot(measures.thresholds(), 100 * values, label=one.name, **line_look(e))
        ax.set(xlim=(0, 1), ylim=(-2, 102), title=str(card.conditions[number]))
        ax.set_xlabel("threshold of normalised uncertainty")
        ax.set_ylabel(name)
    _legend(axes)
    return figure


def diversity_figure(card: Scorecard) -> Figure | None:
    """How much of one member's features another's predict, for every ordered pair, ensemble by ensemble."""
    several = [one for one in card.ensembles if one.members > 1]
    if not several:
        return None
    figure, axes = panels(len(several), columns=4, width=2.7, height=2.7)
    image = None
    for ax, one in zip(axes, several, strict=True):
        matrix = np.full((one.members, one.members), np.nan)
        for row in card.find(ensemble=one.name, target=MEMBERS, measure="adjusted_r2"):
            i, j = map(int, row.detail.split("→"))
            matrix[i, j] = np.nan if row.value is None else row.value
        image = ax.imshow(matrix, cmap="cividis", vmin=0, vmax=1)
        for (i, j), value in np.ndenumerate(matrix):
            text = "–" if np.isnan(value) else f"{value:.2f}"
            ax.text(j, i, text, ha="center", va="center", color="black" if value > 0.6 or np.isnan(value) else "white")
        ax.set(title=one.name, xticks=range(one.members), yticks=range(one.members))
        ax.set_xlabel("features of member ...")
        ax.set_ylabel("predicted from member ...")
    if image is not None:
        figure.colorbar(image, ax=axes, label="adjusted R²", shrink=0.8)
    return figure


def masking_figure(card: Scorecard) -> Figure | None:
    """Loss against steps of the attack, and what attackers of different knowledge achieve."""
    if not any(card.find(attack=MASKING)):
        return None
    figure, (steps_ax, ax) = panels(2, width=4.6)
    kinds = ("white box", "transfer", "black box")
    width = 0.8 / len(card.ensembles)
    for e, one in enumerate(card.ensembles):
        rows = list(card.find(ensemble=one.name, attack=MASKING, measure="loss"))
        steps = [int(row.detail.split()[0]) for row in rows]
        _with_bars(steps_ax, steps, [row.estimate for row in rows], e, one.name, scale=1.0)
        rates = [card.estimate(ensemble=one.name, attack=MASKING, measure="error_rate", detail=kind) for kind in kinds]
        known = [rate or Estimate(np.nan, np.nan, np.nan) for rate in rates]
        middle = np.arange(len(kinds)) + (e - (len(card.ensembles) - 1) / 2) * width
        values = np.array([rate.value for rate in known])
        spread = np.array([[rate.value - rate.low for rate in known], [rate.high - rate.value for rate in known]])
        ax.bar(middle, 100 * values, width, yerr=100 * spread, color=look(e)["color"], label=one.name, capsize=2)
    steps_ax.set_xscale("symlog", linthresh=1)
    steps_ax.set_xticks([0, 1, 2, 5, 10, 20, 50, 100], ["0", "1", "2", "5", "10", "20", "50", "100"])
    steps_ax.minorticks_off()
    steps_ax.set_xlabel("steps of PGD on the ensemble")
    steps_ax.set_ylabel("mean cross-entropy (nat)")
    ax.set_xticks(range(len(kinds)), kinds)
    ax.set_xlabel("what the attacker knows")
    ax.set_ylabel("recordings made wrong (%)")
    ax.legend(frameon=False, fontsize=7)
    return figure


def confusion_figure(card: Scorecard) -> Figure:
    """Counts of what is against what was said of natural recordings, shaded by the share of each true class."""
    classes = card.data.classes
    size = 1.5 + 0.38 * len(classes)
    figure, axes = panels(len(card.ensembles), columns=4, width=size, height=size)
    for e, (ax, one) in enumerate(zip(axes, card.ensembles, strict=True)):
        counts = measures.confusion(card.truth, card.answers[e, 0].answer, len(classes))
        share = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
        ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if share[row, column] > 0.55 else "#222222"
            ax.text(column, row, str(count), ha="center", va="center", color=colour, fontsize=7)
        ax.set_xticks(range(len(classes)), classes, rotation=90 if len(classes) > 4 else 0)
        ax.set_yticks(range(len(classes)), classes)
        ax.set_title(one.name)
        ax.set_xlabel("the ensemble says (recordings)")
        ax.set_ylabel("the label is")
    return figure


def _against_epsilon(card: Scorecard, measure: str, label: str, *, worst: bool) -> Figure | None:
    families = list(dict.fromkeys((c.attack, c.target) for c in card.conditions if c.attack != NATURAL))
    if worst and any(card.find(attack=WORST)):
        families.append((WORST, "ensemble"))
    if not any(row.value is not None for row in card.find(measure=measure)) or not families:
        return None
    figure, axes = panels(len(families), columns=3)
    for ax, (attack, target) in zip(axes, families, strict=True):
        for e, one in enumerate(card.ensembles):
            rows = sorted(
                card.find(ensemble=one.name, attack=attack, target=target, measure=measure), key=lambda row: row.epsilon
            )
            strengths, found = [row.epsilon for row in rows], [row.estimate for row in rows]
            natural = _natural(card, e, measure, _covered(card, attack, target))
            _with_bars(ax, [0.0, *strengths], [natural, *found], e, one.name, scale=100.0)
        n_records = len(_covered(card, attack, target))
        on = "" if attack == WORST else f" on the {target}" if target == "ensemble" else f" on {target}"
        ax.set_title(f"{attack}{on}  (n = {n_records})")
        ax.set_xlabel(f"strength ε ({card.data.unit})")
        ax.set_ylabel(label)
        ax.axhline(0, color=QUIET, linewidth=0.5)
        ax.set_xlim(left=0)
        if measure == "accuracy":
            ax.set_ylim(-2, 102)
    _legend(axes)
    return figure


def _legend(axes: list[Axes]) -> None:
    """In the first panel that has something in it."""
    drawn = [ax for ax in axes if ax.get_legend_handles_labels()[0]]
    if drawn:
        drawn[0].legend(frameon=False, fontsize=7)


def _covered(card: Scorecard, attack: str, target: str) -> measures.Labels:
    """The recordings that an attack covers; the worst of all covers those that all attacks do."""
    covered = card.records[0]
    for condition, places in zip(card.conditions, card.records, strict=True):
        if attack == WORST or (condition.attack, condition.target) == (attack, target):
            covered = np.intersect1d(covered, places)
    return covered


def _natural(card: Scorecard, e: int, measure: str, places: measures.Labels) -> Estimate | None:
    """The measure on these recordings when they are natural."""
    said = card.answers[e, 0].at(places)
    if measure == "accuracy":
        return bootstrap(partial(measures.accuracy, said.right), len(places))
    found = bootstrap(partial(measures.uncertainty_gap, said.right, said.uncertainty), len(places))
    return found if np.isfinite(found.value) and not said.alone else None


def _with_bars(
    ax: Axes, x: list[float] | list[int], estimates: list[Estimate | None], number: int, label: str, *, scale: float
) -> None:
    """A line through the values, and their intervals as a band."""
    known = [(place, found) for place, found in zip(x, estimates, strict=True) if found is not None]
    if not known:
        return
    places = [place for place, _ in known]
    kind = look(number)
    ax.plot(places, [scale * found.value for _, found in known], label=label, markersize=4, **kind)
    low, high = [scale * found.low for _, found in known], [scale * found.high for _, found in known]
    ax.fill_between(places, low, high, color=kind["color"], alpha=0.15, linewidth=0)


def _middle_conditions(card: Scorecard) -> list[int]:
    """Of each of the first two attacks on all recordings, the condition that stands for it."""
    families: dict[tuple[str, str], list[int]] = {}
    for number, condition in enumerate(card.conditions):
        if condition.attack != NATURAL and condition.records is None:
            families.setdefault((condition.attack, condition.target), []).append(number)
    return [numbers[min(_MIDDLE, len(numbers) - 1)] for numbers in list(families.values())[:2]]


def _with_area(name: str, area: Estimate | None) -> str:
    return f"{name}  {100 * area.value:.1f} ({100 * area.low:.1f} to {100 * area.high:.1f})" if area else name


FIGURES: dict[str, Callable[[Scorecard], Figure | None]] = {
    "examples": examples_figure,
    "accuracy": accuracy_figure,
    "uncertainty_gap": gap_figure,
    "deferral": deferral_figure,
    "thresholds": thresholds_figure,
    "diversity": diversity_figure,
    "masking": masking_figure,
    "confusion": confusion_figure,
}
"""Every figure of a report by its file name; None where a scorecard has nothing to draw."""


def draw_figures(card: Scorecard) -> dict[str, Figure]:
    """All figures that the scorecard has something for."""
    with styled():
        drawn = {name: draw(card) for name, draw in FIGURES.items()}
    return {name: figure for name, figure in drawn.items() if figure is not None}
