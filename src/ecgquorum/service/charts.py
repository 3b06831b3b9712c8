"""Where things go in the charts of the pages, in percent of the chart: so that they fit every width of screen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ecgquorum.service.measures import Drift, Share, Step, share

_MOST_TICKS = 6
_SHADES = 5


@dataclass(frozen=True)
class Bar:
    """A bar that stands on the bottom; `told`: what it stands for."""

    x: float
    width: float
    height: float
    told: str
    kind: str = ""


@dataclass(frozen=True)
class Tick:
    """A word under the chart; `side`: start, middle or end."""

    x: float
    text: str
    side: str = "middle"


@dataclass(frozen=True)
class Columns:
    """Bars, what is under them, and the largest count."""

    bars: list[Bar]
    ticks: list[Tick]
    top: int


@dataclass(frozen=True)
class Histogram:
    """A histogram of uncertainty, with the range of training and the policy's threshold."""

    columns: Columns
    training_width: float
    threshold_x: float | None


@dataclass(frozen=True)
class Interval:
    """A share with its interval, along or up the chart."""

    name: str
    share: Share
    value: float
    low: float
    high: float
    x: float = 0.0


@dataclass(frozen=True)
class Vote:
    """What everybody gives one class, in percent, the ensemble first; `favoured`: who prefers it to all others."""

    name: str
    percents: list[float]
    favoured: list[bool]


@dataclass(frozen=True)
class Cell:
    """A number in a table, and how dark its field is."""

    count: int
    shade: int
    agrees: bool


def votes(members: Sequence[Mapping[str, float]], ensemble: Mapping[str, float], classes: Sequence[str]) -> list[Vote]:
    """Bars for each class: the ensemble's probability, and every member's own."""
    everybody = [ensemble, *members]
    best = [max(classes, key=lambda name, one=one: one.get(name, 0.0)) for one in everybody]  # type: ignore[misc]
    return [
        Vote(name, [100 * one.get(name, 0.0) for one in everybody], [favourite == name for favourite in best])
        for name in classes
    ]


def drift(found: Drift) -> Histogram:
    """The histogram."""
    top, reach = max([1, *found.bins]), found.edges[-1]
    width = 100 / len(found.bins)
    bars = [
        Bar(i * width, width * 0.9, 100 * count / top, f"{count} from {low:.2f} to {high:.2f}")
        for i, (count, low, high) in enumerate(zip(found.bins, found.edges, found.edges[1:], strict=False))
    ]
    marks = [reach * i / 4 for i in range(5)]
    ticks = [Tick(25.0 * i, f"{mark:.2g}", _side(i, 5)) for i, mark in enumerate(marks)]
    threshold = 100 * found.threshold / reach if found.threshold is not None else None
    return Histogram(Columns(bars, ticks, top), 100 / reach, threshold)


def throughput(steps: Sequence[Step], step_s: int) -> Columns:
    """What was uploaded, answered and reviewed in each step of time."""
    kinds = ("uploaded", "answered", "reviewed")
    top = max([1, *(getattr(step, kind) for step in steps for kind in kinds)])
    width = 100 / max(1, len(steps))
    bars = []
    for number, step in enumerate(steps):
        for place, kind in enumerate(kinds):
            count = getattr(step, kind)
            x = width * (number + 0.1 + 0.27 * place)
            bars.append(Bar(x, width * 0.25, 100 * count / top, f"{count} {kind}, {_moment(step.at, step_s)}", kind))
    return Columns(bars, _ticks([_moment(step.at, step_s) for step in steps]), top)


def deferral(steps: Sequence[Step]) -> list[Interval]:
    """The share that was deferred in each step of time in which anything was answered."""
    width = 100 / max(1, len(steps))
    found = []
    for number, step in enumerate(steps):
        one = share(step.deferred, step.answered)
        if one.value is not None and one.low is not None and one.high is not None:
            value, low, high = (100 * (1 - v) for v in (one.value, one.low, one.high))
            found.append(Interval(step.at, one, value, low, high, width * (number + 0.5)))
    return found


def shares(named: Mapping[str, Share]) -> list[Interval]:
    """Shares along a line from 0 to 100 percent."""
    return [
        Interval(name, one, 100 * (one.value or 0), 100 * (one.low or 0), 100 * (one.high or 0))
        for name, one in named.items()
    ]


def confusion(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[str, list[Cell]]]:
    """The table of verdicts and answers, darker where there are more."""
    top = max([1, *(count for row in counts.values() for count in row.values())])
    return [
        (final, [Cell(count, -(-_SHADES * count // top), final == answered) for answered, count in row.items()])
        for final, row in counts.items()
    ]


def _ticks(words: Sequence[str]) -> list[Tick]:
    """A few of the words, where their columns are."""
    width = 100 / max(1, len(words))
    every = -(-len(words) // _MOST_TICKS) or 1
    return [Tick(width * (i + 0.5), word) for i, word in enumerate(words) if i % every == 0]


def _side(number: int, total: int) -> str:
    return "start" if number == 0 else "end" if number == total - 1 else "middle"


def _moment(at: str, step_s: int) -> str:
    return datetime.fromisoformat(at).strftime("%d %b" if step_s >= 86400 else "%H:%M")
