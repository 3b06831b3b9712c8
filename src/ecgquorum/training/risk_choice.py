"""Choose the inputs of a risk by cross-fitting, and measure what it does under every condition."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from ecgquorum import metrics
from ecgquorum.metrics import Array, Flags, Labels
from ecgquorum.metrics.logistic import cross_fit_logistic
from ecgquorum.metrics.selective import BUDGET

NATURAL_WEIGHTS = (0.75, 0.9, 1.0)
"""Weights of the natural recordings that are tried where the one that was asked for ranks natural errors badly."""


@dataclass(frozen=True, eq=False)
class RiskSamples:
    """Predictions of tune recordings under all conditions, one row for each recording and condition.

    scores:    name -> (row,) · inputs: (row, input), those of `RISK_INPUTS` that there are
    errors:    (row,) · weights: (row,), with a sum of 1 · conditions: (row,), their numbers
    folds:     (repeat, row), the numbers of the folds
    """

    names: tuple[str, ...]
    inputs: Array
    scores: dict[str, Array]
    errors: Flags
    weights: Array
    conditions: Labels
    folds: Labels

    @property
    def natural_weight(self) -> float:
        """Of all natural recordings together."""
        return float(self.weights[self.conditions == 0].sum())

    def reweight(self, natural_weight: float) -> Array:
        """(row,): the weights, with this one for all natural recordings together."""
        natural, known = self.conditions == 0, self.natural_weight
        others = (1 - natural_weight) / (1 - known) if known < 1 else 0.0
        return self.weights * np.where(natural, natural_weight / known, others)

    def measure(self, metric: Callable[[Flags, Array], Array], score: Array, condition: int) -> float:
        """The mean over folds and repeats of a metric under a condition; NaN if it is defined in none.

        Risks of two folds are not compared: a fold with more errors is left to a model that has seen fewer.

        score: (row,), or (repeat, row) where it is cross-fitted
        """
        found = []
        for folds, values in zip(self.folds, np.broadcast_to(score, self.folds.shape), strict=True):
            rows = [(self.conditions == condition) & (folds == fold) for fold in np.unique(folds)]
            found += [float(metric(self.errors[some], values[some])[0]) for some in rows if some.any()]
        defined = [value for value in found if math.isfinite(value)]
        return sum(defined) / len(defined) if defined else math.nan

    def cross_fit(self, inputs: Sequence[str], weights: Array, calibrate_on: Flags | None = None) -> Array:
        """(repeat, row): the risk by the model that was fitted without the fold of the row."""
        columns = self.columns(inputs)
        return np.stack(
            [cross_fit_logistic(columns, self.errors, weights, folds, calibrate_on) for folds in self.folds]
        )

    def columns(self, inputs: Sequence[str]) -> Array:
        """(row, input): these inputs."""
        return self.inputs[:, [self.names.index(name) for name in inputs]]


@dataclass(frozen=True, eq=False)
class RiskCandidate:
    """A set of inputs, fitted with a weight of the natural recordings.

    crossed: (repeat, row), the cross-fitted risk
    loss:    of `crossed`, with the weights of the conditions that were asked for
    area:    AUGRC of the natural recordings by `crossed`
    """

    inputs: tuple[str, ...]
    natural_weight: float
    crossed: Array
    loss: float
    area: float


def choose_candidate(samples: RiskSamples) -> RiskCandidate:
    """Return the candidate with the smallest loss among those that rank natural errors no worse than 1 - max p.

    Where errors under other conditions are confident, a fit that has to explain them gives the confidence too small a
    weight for natural recordings. So every set of inputs is also fitted with larger weights of these, up to 1.
    """
    shares = [samples.natural_weight, *(share for share in NATURAL_WEIGHTS if share > samples.natural_weight)]
    sets = [(samples.names[0], *more) for size in range(3) for more in combinations(samples.names[1:], size)]
    tried = [_try(samples, inputs, share) for inputs in sets for share in shares]
    limit = samples.measure(metrics.augrc, samples.scores["risk"], 0)  # 1 - max p, since no model is fitted yet
    fair = [one for one in tried if one.area <= limit + 1e-9]
    return min(fair or [tried[len(shares) - 1]], key=lambda one: one.loss)  # or the confidence of natural recordings


def _try(samples: RiskSamples, inputs: tuple[str, ...], natural_weight: float) -> RiskCandidate:
    crossed = samples.cross_fit(inputs, samples.reweight(natural_weight))
    likelihood = np.maximum(np.where(samples.errors, crossed, 1 - crossed), 1e-12)
    loss = float((-np.log(likelihood) @ samples.weights).mean())
    return RiskCandidate(inputs, natural_weight, crossed, loss, samples.measure(metrics.augrc, crossed, 0))


def describe_conditions(names: Sequence[str], samples: RiskSamples, crossed: Array) -> Iterator[dict[str, Any]]:
    """What was measured under each condition; the risk is cross-fitted."""
    measured: dict[str, Callable[[Flags, Array], Array]] = {
        "error_auroc": metrics.error_auroc,
        "aurc": metrics.aurc,
        "augrc": metrics.augrc,
        "errors_caught_at_10": partial(metrics.errors_caught, budget=BUDGET),
    }
    for number, name in enumerate(names):
        rows = samples.conditions == number
        yield {
            "name": name,
            "n_records": int(rows.sum()),
            "weight": round_figure(samples.weights[rows].sum()),
            "error_rate": round_figure(samples.errors[rows].mean()),
            "mean_risk": round_figure(crossed[:, rows].mean()),
            "scores": {
                score: {key: round_figure(samples.measure(metric, values, number)) for key, metric in measured.items()}
                for score, values in (samples.scores | {"risk": crossed}).items()
            },
        }


def round_figure(value: Any) -> float | None:
    """A number of the card; None where it is not defined."""
    number = float(np.asarray(value).item())
    return round(number, 5) if math.isfinite(number) else None
