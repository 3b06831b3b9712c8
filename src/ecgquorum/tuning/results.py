"""What a search has found so far: trials, those that no other beats, and the chosen one."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ecgquorum.metrics import Estimate
from ecgquorum.tuning.space import Space, Values
from ecgquorum.tuning.trial import ATTACKED, MEASURES, NATURAL


@dataclass(frozen=True)
class Trial:
    """One that has come to its end; without measures, `reason` says why."""

    number: int
    values: Values
    measures: dict[str, Estimate]
    reason: str = ""

    @property
    def accuracies(self) -> tuple[float, float]:
        """On natural recordings and under attack."""
        return self.measures[NATURAL].value, self.measures[ATTACKED].value

    @property
    def mean(self) -> float:
        """Of both accuracies: what the chosen one has most of."""
        return sum(self.accuracies) / 2


def measured_trials(trials: Iterable[Trial]) -> list[Trial]:
    """Those that did not fail."""
    return [trial for trial in trials if trial.measures]


def pareto_front(trials: Iterable[Trial]) -> list[Trial]:
    """Those that no other trial equals or betters in both accuracies while bettering one; by natural accuracy."""
    measured = measured_trials(trials)
    front = [one for one in measured if not any(_beats(other, one) for other in measured)]
    return sorted(front, key=lambda trial: (-trial.accuracies[0], trial.number))


def chosen_trial(trials: Iterable[Trial]) -> Trial | None:
    """Of the front the one with the highest mean of both accuracies; of equals the first."""
    return min(pareto_front(trials), key=lambda trial: (-trial.mean, trial.number), default=None)


def trials_csv(trials: Sequence[Trial], space: Space) -> str:
    """A line a trial: its parameters, its measures with their intervals, or why it failed."""
    front, chosen = {trial.number for trial in pareto_front(trials)}, chosen_trial(trials)
    intervals = [f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high")]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, ["trial", "front", "chosen", *space.names, *intervals, "reason"], restval="", lineterminator="\n"
    )
    writer.writeheader()
    for trial in trials:
        row: dict[str, object] = {"trial": trial.number, "reason": trial.reason, **trial.values}
        row |= {"front": trial.number in front, "chosen": trial is chosen}
        for name, found in trial.measures.items():
            row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        writer.writerow(row)
    return text.getvalue()


def _beats(one: Trial, other: Trial) -> bool:
    ours, theirs = one.accuracies, other.accuracies
    return ours != theirs and all(a >= b for a, b in zip(ours, theirs, strict=True))
