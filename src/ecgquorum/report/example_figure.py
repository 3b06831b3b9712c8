"""Example recordings on ECG paper, natural and attacked, with every ensemble's prediction (the paper's figure 2)."""

from matplotlib.figure import Figure

from ecgquorum._internal.figure_style import CORRECT_COLOUR, ERROR_COLOUR, GREY
from ecgquorum.evaluation.conditions import NATURAL
from ecgquorum.evaluation.examples import Example
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.ecg_paper import STANDARD
from ecgquorum.report.paper_drawing import MM, draw_paper, paper_size_mm

_HEIGHT_MV = (-0.9, 1.3)
_TITLE_MM, _GAP_MM, _TEXT_MM, _LINE_MM = 6.0, 5.0, 84.0, 4.2
_MOST = 2  # attacks shown of each example


def examples_figure(card: Scorecard) -> Figure | None:
    """Draw each example as it is and under attacks; beside it each ensemble's class, probability and uncertainty."""
    attacked = [example for example in card.examples if _choose_attacks(card, example)] or card.examples
    shown = [(example, number) for example in attacked for number in (0, *_choose_attacks(card, example))]
    if not shown:
        return None
    seconds = max(len(example.natural) / example.rate_hz for example in card.examples)
    width_mm, paper_mm = paper_size_mm(seconds, _HEIGHT_MV)
    height_mm = max(paper_mm, _LINE_MM * (len(card.ensembles) + 1))
    total_w = width_mm + _TEXT_MM + 3 * _GAP_MM
    total_h = len(shown) * (height_mm + _TITLE_MM) + 2 * _GAP_MM
    figure = Figure(figsize=(total_w * MM, total_h * MM))
    starred = False
    for row, (example, number) in enumerate(shown):
        bottom = total_h - (row + 1) * (height_mm + _TITLE_MM)
        top = bottom + height_mm
        box = (_GAP_MM / total_w, (top - paper_mm) / total_h, width_mm / total_w, paper_mm / total_h)
        ax = figure.add_axes(box)
        signal = example.attacked[number] if number else example.natural
        draw_paper(ax, signal.tolist(), example.rate_hz, _HEIGHT_MV)
        label = card.data.classes[int(card.labels[example.position])]
        condition = card.conditions[number]
        unit = "" if condition.attack == NATURAL else f" {card.data.unit}"
        ax.set_title(f"{condition}{unit}", loc="left", fontsize=9, fontweight="bold", pad=3)
        ax.set_title(f"{example.id}, label {label}", loc="right", color=GREY, fontsize=8, pad=3)
        x = (width_mm + 2 * _GAP_MM) / total_w
        starred |= _write_predictions(figure, card, example, number, (x, top, total_w, total_h))
    footing = f"lead {card.examples[0].lead}, {STANDARD}, first {seconds:g} s, higher peaks cut off"
    if starred:
        footing += "    * attacked through its own member, so the trace differs slightly"
    figure.text(_GAP_MM / total_w, 2 / total_h, footing, fontsize=7, color=GREY)
    return figure


def _write_predictions(
    figure: Figure, card: Scorecard, example: Example, number: int, where: tuple[float, float, float, float]
) -> bool:
    """Write each ensemble's prediction; return whether one of them was given another trace."""
    x, top, total_w, total_h = where
    columns = (0.0, 34.0, 46.0, 62.0)
    for offset, head in zip(columns, ("", "class", "P", "uncertainty"), strict=True):
        figure.text(x + offset / total_w, (top - 3) / total_h, head, fontsize=7, color=GREY)
    starred = False
    for e, one in enumerate(card.ensembles):
        if (e, number) not in card.predictions:
            continue
        found = card.predictions[e, number]
        row = int(card.records[number].searchsorted(example.position))
        own = number > 0 and one.name not in example.ensembles.get(number, ())
        starred |= own
        predicted, correct = card.data.classes[int(found.predicted[row])], bool(found.correct[row])
        texts = (
            f"{'✓' if correct else '✗'} {one.name}{'*' if own else ''}",
            predicted,
            f"{found.probs[row].max():.2f}",
            "–" if found.single_member else f"{found.uncertainty[row]:.2f}",
        )
        y = (top - 3 - (e + 1) * _LINE_MM) / total_h
        for offset, text in zip(columns, texts, strict=True):
            figure.text(x + offset / total_w, y, text, fontsize=8, color=CORRECT_COLOUR if correct else ERROR_COLOUR)
    return starred


def _choose_attacks(card: Scorecard, example: Example) -> list[int]:
    """The second strength, or the only one, of each of the first attacks."""
    families: dict[tuple[str, str], list[int]] = {}
    for number in sorted(example.attacked):
        condition = card.conditions[number]
        if not condition.is_attack:
            continue
        families.setdefault((condition.attack, condition.target), []).append(number)
    return [numbers[min(1, len(numbers) - 1)] for numbers in list(families.values())[:_MOST]]
