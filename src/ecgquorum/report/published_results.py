"""The results of Wiedeman & Wang, to compare ours with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ecgquorum.cohorts.sources import cpsc2018, physionet2017
from ecgquorum.evaluation.conditions import NATURAL
from ecgquorum.evaluation.metric_rows import MetricRow
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.recipes import without_hardening

_DATA_OF_CLASSES = {
    tuple(physionet2017.CLASS_NAMES): "physionet2017",
    tuple(cpsc2018.CLASS_NAMES): "cpsc2018",
}
_TARGET = "member 0"


@dataclass(frozen=True)
class PaperData:
    """The recordings behind the paper's results."""

    n_train: int
    n_test: int
    rate_hz: float


PAPER_DATA = {"physionet2017": PaperData(7675, 853, 300.0), "cpsc2018": PaperData(5751, 639, 500.0)}


@cache
def _tables() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((files("ecgquorum.report") / "published.json").read_text())
    return content


def paper_data_set(classes: tuple[str, ...]) -> str | None:
    """Which of the paper's two data sets has these classes."""
    return _DATA_OF_CLASSES.get(classes)


def unchanged_kind(attacks: Sequence[Mapping[str, Any]], name: str, target: str) -> str | None:
    """The kind of an evaluated attack with none of its options changed; None where there is no such attack."""
    own = (attack for attack in attacks if (attack["name"], attack["target"]) == (name, target))
    attack = next(own, None)
    return None if attack is None or attack["options"] else str(attack["kind"])


def paper_value(
    classes: tuple[str, ...], strategy: str, metric: str, attack: str, target: str, epsilon: float
) -> float | None:
    """The paper's result as a share of 1; None where it has none."""
    data_set = paper_data_set(classes)
    if data_set is None or not strategy:
        return None
    row = _tables()[data_set].get(metric, {}).get(without_hardening(strategy), {})
    if attack == NATURAL:
        found = row.get(NATURAL)
    else:
        found = row.get(attack, {}).get(f"{epsilon:g}") if target == _TARGET else None
    return None if found is None else found / 100


def is_comparable(card: Scorecard, metric: str) -> bool:
    """Whether the paper computed this metric in the same way; R_cc, R_iu and UA depend on the normalisation."""
    return metric == "accuracy" or card.evaluation.get("normalise") == "authors"


def find_paper_value(row: MetricRow, card: Scorecard) -> float | None:
    """The paper's result, if the row is about the paper's attack with none of its options changed."""
    natural = row.attack == NATURAL
    kind = NATURAL if natural else unchanged_kind(card.evaluation["attacks"], row.attack, row.target)
    if kind is None:
        return None
    return paper_value(card.data.classes, row.strategy, row.metric, kind, row.target, row.epsilon)
