"""Metric values as tidy rows, one value each."""

import csv
import io
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ecgquorum.evaluation.conditions import Condition
from ecgquorum.evaluation.metric_values import MetricValue
from ecgquorum.metrics import Estimate

RECIPE_TABLES = ("input", "member", "training")
"""Tables of a recipe that every strategy has."""

_OF_ENSEMBLE = frozenset({"strategy", "seed", "model", "data"})


@dataclass(frozen=True)
class MetricRow:
    """One value; `value`, `low` and `high` are None where it is not defined, and `reason` says why.

    ensemble:    its name in tables · detail: a class, an uncertainty score or a pair of members
    model, data: hashes of the weights and of the recordings
    """

    ensemble: str
    strategy: str
    seed: int
    attack: str
    target: str
    epsilon: float
    metric: str
    detail: str
    value: float | None
    low: float | None
    high: float | None
    reason: str
    n_records: int
    model: str
    data: str

    @property
    def estimate(self) -> Estimate | None:
        """The value with its interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return Estimate(self.value, self.low, self.high)


@dataclass(frozen=True)
class EnsembleFacts:
    """What a scorecard knows about an ensemble.

    same_cohort:   whether it was trained on the train part of the evaluated cohort; if not, it may have been trained on
                   evaluated recordings
    network:       the members and their training, without what the strategy adds
    deviations:    how it was trained otherwise than in the paper's setting; empty in that setting
    recipe_hashes: of every table of its recipe, such as "training: 0f3a..."; empty in scorecards of earlier versions
    """

    name: str
    strategy: str
    seed: int
    members: int
    model: str
    information_range: tuple[float, float]
    temperature: float
    same_cohort: bool
    network: str
    deviations: tuple[str, ...] = ("its recipe was not recorded",)
    recipe_hashes: tuple[str, ...] = ()

    def differs_in(self, other: "EnsembleFacts", tables: Collection[str]) -> bool:
        """Whether the recipes differ in one of these tables; not where one of the recipes was not recorded."""
        found = [{text for text in one.recipe_hashes if text.partition(": ")[0] in tables} for one in (self, other)]
        return bool(self.recipe_hashes and other.recipe_hashes) and found[0] != found[1]


def make_row(facts: EnsembleFacts, data: str, condition: Condition, n_records: int, found: MetricValue) -> MetricRow:
    """Combine a metric value with what it was computed on."""
    estimate = found.estimate
    value, low, high = (v if math.isfinite(v) else None for v in (estimate.value, estimate.low, estimate.high))
    return MetricRow(
        facts.name,
        facts.strategy,
        facts.seed,
        condition.attack,
        condition.target,
        condition.epsilon,
        found.metric,
        found.detail,
        value,
        low,
        high,
        found.reason if value is not None else found.reason or "not defined",
        found.n_records or n_records,
        facts.model,
        data,
    )


def pack_row(row: MetricRow) -> dict[str, Any]:
    """A row as plain values, without what its ensemble says and without empty texts."""
    return {name: value for name, value in asdict(row).items() if name not in _OF_ENSEMBLE and value != ""}


def unpack_row(packed: dict[str, Any], facts: EnsembleFacts, data: str) -> MetricRow:
    """The row that `pack_row` packed."""
    of_ensemble = {"strategy": facts.strategy, "seed": facts.seed, "model": facts.model, "data": data}
    values: dict[str, Any] = {"target": "", "detail": "", "reason": ""} | of_ensemble | packed
    return MetricRow(**values)


def rows_to_csv(rows: Sequence[MetricRow]) -> str:
    """Format rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(MetricRow)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()
