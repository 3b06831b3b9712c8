"""Positions of chart elements in percent of the chart, so that charts fit every screen width."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ecgquorum.service.desk_metrics import Drift, TimeStep
from ecgquorum.service.proportions import Proportion, proportion

_MAX_TICKS = 6
_SHADES = 5
_KINDS = {"uploaded": "uploaded", "answered": "classified", "reviewed": "reviewed"}


@dataclass(frozen=True)
class Bar:
    """A bar from the bottom of the chart; `title` is its tooltip."""

    x: float
    width: float
    height: float
    title: str
    kind: str = ""


@dataclass(frozen=True)
class Tick:
    """A label under the chart; `side`: start, middle or end."""

    x: float
    text: str
    side: str = "middle"


@dataclass(frozen=True)
class BarChart:
    """Bars, the ticks under them, and the largest count."""

    bars: list[Bar]
    ticks: list[Tick]
    top: int


@dataclass(frozen=True)
class UncertaintyHistogram:
    """A histogram of uncertainty, with the range of training and the policy's threshold."""

    chart: BarChart
    training_width: float
    threshold_x: float | None


@dataclass(frozen=True)
class IntervalMark:
    """A proportion with its confidence interval."""

    name: str
    share: Proportion
    value: float
    low: float
    high: float
    x: float = 0.0


@dataclass(frozen=True)
class ClassBars:
    """Probabilities of one class in percent: the ensemble's calibrated one, then each member's raw one.

    is_top: whether the class is the most probable one
    """

    name: str
    percents: list[float]
    is_top: list[bool]


@dataclass(frozen=True)
class ConfusionCell:
    """A count in the confusion matrix, and the shade of its cell."""

    count: int
    shade: int
    agrees: bool


def class_bars(
    members: Sequence[Mapping[str, float]], ensemble: Mapping[str, float], classes: Sequence[str]
) -> list[ClassBars]:
    """Bars for each class: the ensemble's calibrated probability, and the raw one of each member."""
    columns = [ensemble, *members]
    best = [max(classes, key=lambda name, one=one: one.get(name, 0.0)) for one in columns]  # type: ignore[misc]
    return [
        ClassBars(name, [100 * one.get(name, 0.0) for one in columns], [top == name for top in best])
        for name in classes
    ]


def drift_histogram(drift: Drift) -> UncertaintyHistogram:
    """Histogram of the uncertainty."""
    top, reach = max([1, *drift.bins]), drift.edges[-1]
    width = 100 / len(drift.bins)
    bars = [
        Bar(i * width, width * 0.9, 100 * count / top, f"{count} recordings from {low:.2f} to {high:.2f}")
        for i, (count, low, high) in enumerate(zip(drift.bins, drift.edges, drift.edges[1:], strict=False))
    ]
    marks = [reach * i / 4 for i in range(5)]
    ticks = [Tick(25.0 * i, f"{mark:.2g}", _side(i, 5)) for i, mark in enumerate(marks)]
    threshold = 100 * drift.threshold / reach if drift.threshold is not None else None
    return UncertaintyHistogram(BarChart(bars, ticks, top), 100 / reach, threshold)


def throughput(steps: Sequence[TimeStep], step_s: int) -> BarChart:
    """Numbers of uploaded, classified and reviewed recordings in each time step."""
    top = max([1, *(getattr(step, kind) for step in steps for kind in _KINDS)])
    width = 100 / max(1, len(steps))
    bars = []
    for number, step in enumerate(steps):
        for place, kind in enumerate(_KINDS):
            count = getattr(step, kind)
            x = width * (number + 0.1 + 0.27 * place)
            title = f"{count} {_KINDS[kind]}, {_format_step(step.at, step_s)}"
            bars.append(Bar(x, width * 0.25, 100 * count / top, title, kind))
    return BarChart(bars, _ticks([_format_step(step.at, step_s) for step in steps]), top)


def deferral(steps: Sequence[TimeStep]) -> list[IntervalMark]:
    """Proportion of deferred recordings in each time step with results."""
    width = 100 / max(1, len(steps))
    marks = []
    for number, step in enumerate(steps):
        one = proportion(step.deferred, step.answered)
        if one.value is not None and one.low is not None and one.high is not None:
            value, low, high = (100 * (1 - v) for v in (one.value, one.low, one.high))
            marks.append(IntervalMark(step.at, one, value, low, high, width * (number + 0.5)))
    return marks


def proportions(named: Mapping[str, Proportion]) -> list[IntervalMark]:
    """Proportions as marks from 0 to 100 percent."""
    return [
        IntervalMark(name, one, 100 * (one.value or 0), 100 * (one.low or 0), 100 * (one.high or 0))
        for name, one in named.items()
    ]


def confusion(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[str, list[ConfusionCell]]]:
    """Confusion matrix of final verdicts and the ensemble's labels; more counts are darker."""
    top = max([1, *(count for row in counts.values() for count in row.values())])
    return [
        (
            final,
            [ConfusionCell(count, -(-_SHADES * count // top), final == answered) for answered, count in row.items()],
        )
        for final, row in counts.items()
    ]


def _ticks(labels: Sequence[str]) -> list[Tick]:
    """A few of the labels at the positions of their columns."""
    width = 100 / max(1, len(labels))
    every = -(-len(labels) // _MAX_TICKS) or 1
    return [Tick(width * (i + 0.5), label) for i, label in enumerate(labels) if i % every == 0]


def _side(number: int, total: int) -> str:
    return "start" if number == 0 else "end" if number == total - 1 else "middle"


def _format_step(at: str, step_s: int) -> str:
    return datetime.fromisoformat(at).strftime("%d %b" if step_s >= 86400 else "%H:%M")
