"""What Wiedeman & Wang report, to be printed beside what was measured here."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ecgquorum.cohorts.sources import cpsc2018, physionet2017
from ecgquorum.recipes import without_hardening

_DATA_OF_CLASSES = {
    tuple(physionet2017.CLASS_NAMES): "physionet2017",
    tuple(cpsc2018.CLASS_NAMES): "cpsc2018",
}
_TARGET = "member 0"


@dataclass(frozen=True)
class PaperData:
    """The recordings that the paper's figures are of."""

    n_train: int
    n_test: int
    rate_hz: float


PAPER_DATA = {"physionet2017": PaperData(7675, 853, 300.0), "cpsc2018": PaperData(5751, 639, 500.0)}


@cache
def _tables() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((files("ecgquorum.report") / "published.json").read_text())
    return content


def published_data(classes: tuple[str, ...]) -> str | None:
    """Which of the paper's two data sets has these classes."""
    return _DATA_OF_CLASSES.get(classes)


def published(
    classes: tuple[str, ...], strategy: str, measure: str, attack: str, target: str, epsilon: float
) -> float | None:
    """The paper's figure as a share of 1; None where it has none."""
    data = published_data(classes)
    row = _tables()[data].get(measure, {}).get(without_hardening(strategy), {}) if data and strategy else {}
    if attack == "natural":
        found = row.get("natural")
    else:
        found = row.get(attack, {}).get(f"{epsilon:g}") if target == _TARGET else None
    return None if found is None else found / 100
