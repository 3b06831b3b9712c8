"""Recordings on ECG paper, natural and attacked, with what every ensemble says of them (the paper's figure 2)."""

from matplotlib.figure import Figure

from ecgquorum.evaluation.conditions import NATURAL
from ecgquorum.evaluation.examples import Example
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.ecg_paper import STANDARD
from ecgquorum.report.figure_style import QUIET, RIGHT, WRONG
from ecgquorum.report.paper_drawing import MM, draw_paper, paper_size_mm

_HEIGHT_MV = (-0.9, 1.3)
_TITLE_MM, _GAP_MM, _SAID_MM, _LINE_MM = 6.0, 5.0, 84.0, 4.2
_MOST = 2  # attacks shown of each example


def examples_figure(card: Scorecard) -> Figure | None:
    """Each example as it is and under attacks; beside it each ensemble's class, probability and I_norm."""
    shown = [(example, number) for example in card.examples for number in (0, *_shown_attacks(card, example))]
    if not shown:
        return None
    seconds = max(len(example.natural) / example.rate_hz for example in card.examples)
    width_mm, paper_mm = paper_size_mm(seconds, _HEIGHT_MV)
    height_mm = max(paper_mm, _LINE_MM * (len(card.ensembles) + 1))
    total_w = width_mm + _SAID_MM + 3 * _GAP_MM
    total_h = len(shown) * (height_mm + _TITLE_MM) + 2 * _GAP_MM
    figure = Figure(figsize=(total_w * MM, total_h * MM))
    starred = False
    for place, (example, number) in enumerate(shown):
        bottom = total_h - (place + 1) * (height_mm + _TITLE_MM)
        top = bottom + height_mm
        box = (_GAP_MM / total_w, (top - paper_mm) / total_h, width_mm / total_w, paper_mm / total_h)
        ax = figure.add_axes(box)
        signal = example.crafted[number] if number else example.natural
        draw_paper(ax, signal.tolist(), example.rate_hz, _HEIGHT_MV)
        truth = card.data.classes[int(card.truth[example.place])]
        condition = card.conditions[number]
        unit = "" if condition.attack == NATURAL else f" {card.data.unit}"
        ax.set_title(f"{condition}{unit}", loc="left", fontsize=9, fontweight="bold", pad=3)
        ax.set_title(f"{example.id}, label {truth}", loc="right", color=QUIET, fontsize=8, pad=3)
        x = (width_mm + 2 * _GAP_MM) / total_w
        starred |= _say(figure, card, example, number, (x, top, total_w, total_h))
    footing = f"lead {card.examples[0].lead}, {STANDARD}, first {seconds:g} s, higher peaks cut off"
    if starred:
        footing += "    * attacked through its own member, so not quite the trace that is drawn"
    figure.text(_GAP_MM / total_w, 2 / total_h, footing, fontsize=7, color=QUIET)
    return figure


def _say(
    figure: Figure, card: Scorecard, example: Example, number: int, where: tuple[float, float, float, float]
) -> bool:
    """Write what each ensemble says; whether one of them was given another trace."""
    x, top, total_w, total_h = where
    columns = (0.0, 34.0, 46.0, 62.0)
    for offset, head in zip(columns, ("", "says", "P", "I_norm"), strict=True):
        figure.text(x + offset / total_w, (top - 3) / total_h, head, fontsize=7, color=QUIET)
    starred = False
    for e, one in enumerate(card.ensembles):
        if (e, number) not in card.answers:
            continue
        said = card.answers[e, number]
        row = int(card.records[number].searchsorted(example.place))
        own = number > 0 and one.name not in example.drawn_of.get(number, ())
        starred |= own
        answer, right = card.data.classes[int(said.answer[row])], bool(said.right[row])
        texts = (
            f"{'✓' if right else '✗'} {one.name}{'*' if own else ''}",
            answer,
            f"{said.probs[row].max():.2f}",
            "–" if said.alone else f"{said.uncertainty[row]:.2f}",
        )
        y = (top - 3 - (e + 1) * _LINE_MM) / total_h
        for offset, text in zip(columns, texts, strict=True):
            figure.text(x + offset / total_w, y, text, fontsize=8, color=RIGHT if right else WRONG)
    return starred


def _shown_attacks(card: Scorecard, example: Example) -> list[int]:
    """The second strength, or the only one, of the first attacks that were drawn."""
    families: dict[tuple[str, str], list[int]] = {}
    for number in sorted(example.crafted):
        condition = card.conditions[number]
        families.setdefault((condition.attack, condition.target), []).append(number)
    return [numbers[min(1, len(numbers) - 1)] for numbers in list(families.values())[:_MOST]]
