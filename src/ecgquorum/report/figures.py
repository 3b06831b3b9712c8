"""Figures of a report, each drawn from a scorecard alone."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from ecgquorum import metrics
from ecgquorum._internal.figure_style import GREY, line_style, make_panels, marker_style, use_style
from ecgquorum.evaluation.conditions import MASKING, MEMBERS, MIXED, NATURAL, find_mixtures
from ecgquorum.evaluation.mixed_conditions import draw_assignments, mixed_deferral_curve
from ecgquorum.evaluation.plot import add_legend, draw_band, plot_metric
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.metrics import UNDEFINED, Array, Estimate
from ecgquorum.metrics.scores import DISAGREEMENT_SCORES
from ecgquorum.report.example_figure import examples_figure
from ecgquorum.report.shift_figures import (
    corruption_deferral_figure,
    corruption_examples_figure,
    corruptions_figure,
    heat_map_figure,
    ood_figure,
)

_MIDDLE = 1  # which strength stands for attacks in figures that show one: the second


def accuracy_figure(card: Scorecard) -> Figure | None:
    """Accuracy against the strength of each attack, with intervals."""
    return plot_metric(card) if any(condition.is_attack for condition in card.conditions) else None


def gap_figure(card: Scorecard) -> Figure | None:
    """The uncertainty gap against the strength of each attack, with intervals."""
    attacks = any(condition.is_attack for condition in card.conditions)
    if not attacks or not any(row.estimate for row in card.find(metric="uncertainty_gap")):
        return None
    return plot_metric(card, "uncertainty_gap", "uncertainty gap (× 100)", worst=False)


def deferral_figure(card: Scorecard) -> Figure | None:
    """Remaining errors against the coverage, natural and mixed."""
    if all(one.members == 1 for one in card.ensembles):
        return None
    kinds: list[tuple[str, str, tuple[int, ...]]] = [
        (NATURAL, "", ()),
        *((f"{MIXED} {attack}", target, numbers) for attack, target, numbers in find_mixtures(card.conditions)),
    ]
    assignments = draw_assignments(card.data.n_records, int(card.evaluation["seed"]))
    figure, axes = make_panels(len(kinds), columns=3)
    for ax, (attack, target, numbers) in zip(axes, kinds, strict=True):
        highest = 1.0
        for e, one in enumerate(card.ensembles):
            if one.members == 1 or not all((e, c) in card.predictions for c in (0, *numbers)):
                continue
            strengths = [card.predictions[e, c] for c in (0, *numbers)]
            if numbers:
                wrong, uncertainty = [~one.correct for one in strengths], [one.uncertainty for one in strengths]
                kept, errors = mixed_deferral_curve(wrong, uncertainty, assignments)
            else:
                kept, errors = metrics.deferral_curve(~strengths[0].correct, strengths[0].uncertainty)
            area = card.estimate(ensemble=one.name, attack=attack, target=target, metric="augrc", detail="")
            ax.plot(100 * kept, 100 * errors, label=_format_area(one.name, area), **line_style(e))
            ax.plot([0, 100], [0, 100 * errors[-1]], color=GREY, linewidth=0.6, linestyle=":")
            highest = max(highest, 100 * errors[-1])
        ax.set(title=f"{attack}, {target}".rstrip(", "), xlim=(0, 100), ylim=(0, 1.05 * highest))
        ax.set_xlabel("coverage: recordings not deferred (%)")
        ax.set_ylabel("remaining errors (% of all recordings)")
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize=7, title="AUGRC (95 % interval)", title_fontsize=7)
    return figure


def scores_figure(card: Scorecard) -> Figure | None:
    """Errors caught against the share deferred, for every score of the ensemble that is most accurate naturally."""
    accuracies = [card.predictions[e, 0].correct.mean() for e in range(len(card.ensembles))]
    e = int(np.argmax(accuracies))
    conditions = [c for c in (0, *_middle_conditions(card, whole_part=False)) if (e, c) in card.predictions]
    figure, axes = make_panels(len(conditions), columns=3, height=3.9)
    for ax, c in zip(axes, conditions, strict=True):
        predictions, condition = card.predictions[e, c], card.conditions[c]
        errors = ~predictions.correct
        ax.plot([0, 100], [0, 100], color=GREY, linewidth=0.6, linestyle=":")
        ax.plot([0, 100 * errors.mean(), 100], [0, 100, 100], color=GREY, linewidth=0.6)
        for number, (name, score) in enumerate(predictions.scores().items()):
            if predictions.single_member and name in DISAGREEMENT_SCORES:
                continue
            kept, remaining = metrics.deferral_curve(errors, score)
            area = 100 * metrics.augrc(errors, score)[0]
            caught = 100 * (1 - remaining / max(remaining[-1], 1e-9))
            ax.plot(100 * (1 - kept), caught, label=f"{name.replace('_', ' ')}  {area:.2f}", **line_style(number))
        strength = "" if c == 0 else f" {condition.epsilon:g} {card.data.unit}, {condition.target}"
        ax.set(title=f"{condition.attack}{strength}", xlim=(0, 50), ylim=(0, 101))
        ax.set_xlabel("recordings deferred (%)")
        ax.set_ylabel("errors caught (% of errors)")
        title = f"{100 * errors.mean():.0f} % errors, n = {len(errors)}; AUGRC × 100"
        legend = ax.legend(frameon=False, fontsize=7, title=title, title_fontsize=7, loc="upper center", ncols=2)
        legend.set_bbox_to_anchor((0.5, -0.17))  # below the panel
    figure.suptitle(card.ensembles[e].name, fontsize=10)
    return figure


def thresholds_figure(card: Scorecard) -> Figure | None:
    """R_cc, R_iu and UA against the threshold of uncertainty, natural and attacked."""
    if all(one.members == 1 for one in card.ensembles):
        return None
    curves: dict[str, Callable[..., Array]] = {
        "R_cc, correct when certain (%)": metrics.correct_certain_ratio,
        "R_iu, uncertain when wrong (%)": metrics.incorrect_uncertain_ratio,
        "UA, uncertainty accuracy (%)": metrics.uncertainty_accuracy,
    }
    numbers = [0, *_middle_conditions(card)]
    figure, axes = make_panels(len(curves) * len(numbers), columns=len(curves), width=3.4, height=2.8)
    for place, ax in enumerate(axes):
        number, (name, curve) = numbers[place // len(curves)], list(curves.items())[place % len(curves)]
        for e, one in enumerate(card.ensembles):
            if one.members > 1 and (e, number) in card.predictions:
                found = card.predictions[e, number]
                values = curve(found.correct, found.uncertainty)[0]
                ax.plot(metrics.thresholds(), 100 * values, label=one.name, **line_style(e))
        ax.set(xlim=(0, 1), ylim=(-2, 102), title=str(card.conditions[number]))
        ax.set_xlabel("threshold of normalised uncertainty")
        ax.set_ylabel(name)
    add_legend(axes)
    return figure


def diversity_figure(card: Scorecard) -> Figure | None:
    """Adjusted R² of one member's features from another's, for every ordered pair of each ensemble."""
    several = [one for one in card.ensembles if one.members > 1]
    if not several:
        return None
    figure, axes = make_panels(len(several), columns=4, width=2.7, height=2.7)
    image = None
    for ax, one in zip(axes, several, strict=True):
        matrix = np.full((one.members, one.members), np.nan)
        for row in card.find(ensemble=one.name, target=MEMBERS, metric="adjusted_r2"):
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
    """Loss against steps of PGD, and error rates by the attacker's knowledge."""
    if not any(card.find(attack=MASKING)):
        return None
    figure, (steps_ax, ax) = make_panels(2, width=4.6)
    kinds = ("white box", "transfer", "black box")
    width = 0.8 / len(card.ensembles)
    for e, one in enumerate(card.ensembles):
        rows = list(card.find(ensemble=one.name, attack=MASKING, metric="loss"))
        steps = [int(row.detail.split()[0]) for row in rows]
        draw_band(steps_ax, steps, [row.estimate for row in rows], e, one.name, scale=1.0)
        rates = [card.estimate(ensemble=one.name, attack=MASKING, metric="error_rate", detail=kind) for kind in kinds]
        known = [rate or UNDEFINED for rate in rates]
        middle = np.arange(len(kinds)) + (e - (len(card.ensembles) - 1) / 2) * width
        values = np.array([rate.value for rate in known])
        spread = np.array([[rate.value - rate.low for rate in known], [rate.high - rate.value for rate in known]])
        ax.bar(
            middle, 100 * values, width, yerr=100 * spread, color=marker_style(e)["color"], label=one.name, capsize=2
        )
    steps_ax.set_xscale("symlog", linthresh=1)
    steps_ax.set_xticks([0, 1, 2, 5, 10, 20, 50, 100], ["0", "1", "2", "5", "10", "20", "50", "100"])
    steps_ax.minorticks_off()
    steps_ax.set_xlabel("steps of PGD on the ensemble")
    steps_ax.set_ylabel("mean cross-entropy (nat)")
    ax.set_xticks(range(len(kinds)), kinds)
    ax.set_xlabel("attacker's knowledge")
    ax.set_ylabel("recordings classified wrongly (%)")
    ax.legend(frameon=False, fontsize=7)
    return figure


def confusion_figure(card: Scorecard) -> Figure:
    """Confusion matrices of natural recordings: counts, shaded by the share of each label."""
    classes = card.data.classes
    size = 1.5 + 0.38 * len(classes)
    figure, axes = make_panels(len(card.ensembles), columns=4, width=size, height=size)
    for e, (ax, one) in enumerate(zip(axes, card.ensembles, strict=True)):
        counts = metrics.confusion_matrix(card.labels, card.predictions[e, 0].predicted, len(classes))
        share = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
        ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if share[row, column] > 0.55 else "#222222"
            ax.text(column, row, str(count), ha="center", va="center", color=colour, fontsize=7)
        ax.set_xticks(range(len(classes)), classes, rotation=90 if len(classes) > 4 else 0)
        ax.set_yticks(range(len(classes)), classes)
        ax.set_title(one.name)
        ax.set_xlabel("predicted class (recordings)")
        ax.set_ylabel("label")
    return figure


def _middle_conditions(card: Scorecard, *, whole_part: bool = True) -> list[int]:
    """Of each of the first two attacks (on all recordings, or on some too), the condition that stands for it."""
    families: dict[tuple[str, str], list[int]] = {}
    for number, condition in enumerate(card.conditions):
        if condition.is_attack and (condition.records is None or not whole_part):
            families.setdefault((condition.attack, condition.target), []).append(number)
    return [numbers[min(_MIDDLE, len(numbers) - 1)] for numbers in list(families.values())[:2]]


def _format_area(name: str, area: Estimate | None) -> str:
    if area is None:
        return name
    found = area.times(100)
    return f"{name}  {found.value:.1f} ({found.low:.1f} to {found.high:.1f})"


FIGURES: dict[str, Callable[[Scorecard], Figure | None]] = {
    "examples": examples_figure,
    "accuracy": accuracy_figure,
    "uncertainty_gap": gap_figure,
    "deferral": deferral_figure,
    "scores": scores_figure,
    "thresholds": thresholds_figure,
    "diversity": diversity_figure,
    "masking": masking_figure,
    "confusion": confusion_figure,
    "corruptions": corruptions_figure,
    "corruption_deferral": corruption_deferral_figure,
    "corruption_heat_map": heat_map_figure,
    "ood": ood_figure,
    "corruption_examples": corruption_examples_figure,
}
"""Every figure of a report by its file name; None where a scorecard has nothing to draw."""


def draw_figures(card: Scorecard) -> dict[str, Figure]:
    """Draw every figure for which the scorecard has values."""
    with use_style():
        drawn = {name: draw(card) for name, draw in FIGURES.items()}
    return {name: figure for name, figure in drawn.items() if figure is not None}
