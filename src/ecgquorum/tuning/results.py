"""The trials of a search, those that no other beats, and the chosen one."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ecgquorum.metrics import Estimate
from ecgquorum.tuning.space import Space, Values
from ecgquorum.tuning.trial import ATTACKED, MEASURES, NATURAL


@dataclass(frozen=True)
class Trial:
    """A trial that has ended; one without metrics has a `reason`."""

    number: int
    values: Values
    measures: dict[str, Estimate]
    reason: str = ""

    @property
    def accuracies(self) -> tuple[float, float]:
        """Accuracy on natural recordings and under attack."""
        return self.measures[NATURAL].value, self.measures[ATTACKED].value

    @property
    def mean(self) -> float:
        """The mean of both accuracies; the chosen trial has the highest."""
        return sum(self.accuracies) / 2


def successful_trials(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that did not fail."""
    return [trial for trial in trials if trial.measures]


def pareto_front(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that no other beats in one accuracy without losing in the other; by natural accuracy."""
    measured = successful_trials(trials)
    front = [one for one in measured if not any(_beats(other, one) for other in measured)]
    return sorted(front, key=lambda trial: (-trial.accuracies[0], trial.number))


def choose_trial(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial of the front with the highest mean of both accuracies; of equals the first."""
    return min(pareto_front(trials), key=lambda trial: (-trial.mean, trial.number), default=None)


def trials_csv(trials: Sequence[Trial], space: Space) -> str:
    """Return one line per trial: its parameters, its metrics with their intervals, or why it failed."""
    front, chosen = {trial.number for trial in pareto_front(trials)}, choose_trial(trials)
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
