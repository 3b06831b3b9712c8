"""Fit the scores "distance" and "risk" of an ensemble, on the train and tune parts of its cohort."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum import metrics
from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.ensemble.bundle import describe_fitted_on
from ecgquorum.ensemble.distance import FeatureDistance
from ecgquorum.ensemble.risk import RISK_INPUTS, RiskModel, risk_inputs
from ecgquorum.errors import CohortError, FittingError, MemberError
from ecgquorum.metrics import Array, Flags
from ecgquorum.metrics.logistic import cross_fit_logistic, fit_monotone_logistic
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.training.risk_conditions import Indices, RiskCondition, default_conditions

MIN_RECORDS = 50
"""Tune recordings that it takes to fit a risk."""

N_TRAIN = 2048
"""Training recordings that the distance is fitted on, at most."""

NATURAL_WEIGHTS = (0.75, 0.9, 1.0)
"""Weights of the natural recordings that are tried where the one that was asked for ranks natural errors badly."""

NATURAL = "natural"
BUDGET = 0.1
_BATCH = 32


@dataclass(frozen=True)
class RiskOptions:
    """How `fit_risk` works.

    conditions:     beside natural recordings; None: attacks and corruptions of `default_conditions`
    natural_weight: of all natural recordings together; the other conditions share the rest equally
    records:        tune recordings under every other condition, at most
    folds, repeats: of the cross-fitting: recordings are assigned to folds at random, so many times
    """

    conditions: Sequence[RiskCondition] | None = None
    natural_weight: float = 0.5
    records: int = 150
    folds: int = 5
    repeats: int = 10
    seed: int = 0
    progress: Progress = NO_PROGRESS


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
    conditions: Indices
    folds: Indices

    @property
    def natural_weight(self) -> float:
        """Of all natural recordings together."""
        return float(self.weights[self.conditions == 0].sum())

    def reweighted(self, natural_weight: float) -> Array:
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

    def cross_fit(self, inputs: Sequence[str], weights: Array) -> Array:
        """(repeat, row): the risk by the model that was fitted without the fold of the row."""
        columns = self.columns(inputs)
        return np.stack([cross_fit_logistic(columns, self.errors, weights, folds) for folds in self.folds])

    def columns(self, inputs: Sequence[str]) -> Array:
        """(row, input): these inputs."""
        return self.inputs[:, [self.names.index(name) for name in inputs]]


def fit_risk(ensemble: Ensemble, cohort: Cohort, options: RiskOptions | None = None) -> RiskModel:
    """Fit the feature distance on the train part and the risk on the tune part; the ensemble uses both from then on.

    The risk is fitted under natural, attacked and corrupted conditions. Its inputs, and the weight of the natural
    recordings in the fit, are those with the smallest cross-fitted loss among the ones that do not rank natural errors
    worse than 1 - max p (by AUGRC, cross-fitted).
    """
    options = options or RiskOptions()
    _check(ensemble, cohort)
    ensemble.risk_model = None
    ensemble.distance = _fit_distance(ensemble, cohort, options.progress)
    natural = _predict_natural(ensemble, cohort)
    conditions = list(default_conditions(ensemble.input) if options.conditions is None else options.conditions)
    samples = _collect(ensemble, cohort, natural, conditions, options)
    chosen = _choose(samples)
    weights = samples.reweighted(chosen.natural_weight)
    intercept, coefficients = fit_monotone_logistic(samples.columns(chosen.inputs), samples.errors, weights)
    ensemble.risk_model = RiskModel(
        chosen.inputs,
        tuple(coefficients.tolist()),
        intercept,
        describe_fitted_on(ensemble, cohort.data_hash),
        {
            "n_records": len(cohort.part("tune")),
            "folds": options.folds,
            "repeats": options.repeats,
            "seed": options.seed,
            "natural_weight": _rounded(chosen.natural_weight),
            "calibration_error": _rounded(
                metrics.probability_calibration_error(
                    chosen.crossed.mean(axis=0), samples.errors, samples.weights[None]
                )
            ),
            "conditions": list(
                _describe_conditions([NATURAL, *(one.name for one in conditions)], samples, chosen.crossed)
            ),
        },
    )
    return ensemble.risk_model


def _check(ensemble: Ensemble, cohort: Cohort) -> None:
    """Raise an error if the ensemble's risk cannot be fitted on the cohort."""
    spec, known = ensemble.input, ensemble.card.get("data_hash", cohort.data_hash)
    if (cohort.classes, cohort.leads, cohort.rate_hz) != (ensemble.classes, spec.leads, spec.rate_hz):
        raise CohortError(f"{cohort.path}: expected the classes, leads and rate of the model, found others")
    if known != cohort.data_hash:
        raise CohortError(
            f"{cohort.path}: its data hash is {cohort.data_hash[:12]}..., that of the model's cohort {known[:12]}...; "
            "build the cohort that the model was trained on, as its card says, or tune recordings may be trained on"
        )
    n_records = len(cohort.part("tune"))
    if n_records < MIN_RECORDS:
        raise FittingError(
            f"{cohort.path}: a risk needs at least {MIN_RECORDS} tune recordings, found {n_records}; "
            "risk stays 1 - the largest probability"
        )


def _fit_distance(ensemble: Ensemble, cohort: Cohort, progress: Progress) -> FeatureDistance | None:
    """Fit the distance on training recordings; None if a member has no features."""
    indices = _spread(cohort.part("train"), N_TRAIN)
    features: list[list[Array]] = []
    try:
        for start, some in _batches(indices, cohort):
            progress.update("features of training recordings", start, len(indices))
            features.append(ensemble.member_features(cohort.batch(some, ensemble.input))[1])
    except MemberError:
        return None
    order = np.concatenate([some for _, some in _batches(indices, cohort)])
    return FeatureDistance.fit([np.concatenate(one) for one in zip(*features, strict=True)], cohort.labels[order])


def _predict_natural(ensemble: Ensemble, cohort: Cohort) -> Prediction:
    """Predict the natural tune part; the ensemble's distance is scaled so that its median there is 1."""
    natural = ensemble.predict_part(cohort, "tune")
    if ensemble.distance is None or natural.distance is None:
        return natural
    median = max(float(np.median(natural.distance)), 1e-9)
    ensemble.distance = ensemble.distance.divided_by(median)
    return replace(natural, distance=natural.distance / median)


def _collect(
    ensemble: Ensemble,
    cohort: Cohort,
    natural: Prediction,
    conditions: Sequence[RiskCondition],
    options: RiskOptions,
) -> RiskSamples:
    """Predict some tune recordings under every condition, and add the natural ones."""
    tune = cohort.part("tune")
    positions = _spread(np.arange(len(tune)), options.records)
    found = [(natural, np.arange(len(tune)))]
    for number, condition in enumerate(conditions):
        options.progress.update(f"risk: {condition.name}", number, len(conditions))
        found.append(_predict_condition(ensemble, cohort, condition, positions, options.seed))
    shares = [options.natural_weight] + [(1 - options.natural_weight) / max(1, len(conditions))] * len(conditions)
    names = tuple(name for name in RISK_INPUTS if _is_known(name, natural))
    predictions, records = zip(*found, strict=True)
    weights = np.concatenate([np.full(len(one), share / len(one)) for share, one in zip(shares, records, strict=True)])
    return RiskSamples(
        names,
        np.concatenate([risk_inputs(names, one.probs, one.member_probs, one.distance) for one in predictions]),
        {name: np.concatenate([one.score(name) for one in predictions]) for name in (*names, "risk")},
        np.concatenate([one.label_index != cohort.labels[tune[where]] for one, where in found]),
        weights / weights.sum(),
        np.repeat(np.arange(len(found)), [len(one) for one in records]),
        _draw_folds(cohort, options)[:, np.concatenate(records)],
    )


def _is_known(name: str, natural: Prediction) -> bool:
    """Whether the predictions have an input; a single member has no mutual information."""
    if name == "mutual_information":
        return len(natural.member_probs[0]) > 1
    return name != "distance" or natural.distance is not None


def _predict_condition(
    ensemble: Ensemble, cohort: Cohort, condition: RiskCondition, positions: Indices, seed: int
) -> tuple[Prediction, Indices]:
    """Predict some tune recordings under a condition; also returns their positions in the tune part, in that order."""
    tune = cohort.part("tune")
    order, outputs = [], []
    for _, some in _batches(tune[positions], cohort):
        order.append(np.searchsorted(tune, some))
        outputs.append(ensemble.member_outputs(condition.make(ensemble, cohort, some, seed)))
    probs, distances = (np.concatenate(one) for one in zip(*outputs, strict=True))
    where = np.concatenate(order)
    return ensemble.make_prediction([cohort.rows[i].id for i in tune[where]], probs, distances), where


@dataclass(frozen=True, eq=False)
class _Candidate:
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


def _choose(samples: RiskSamples) -> _Candidate:
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


def _try(samples: RiskSamples, inputs: tuple[str, ...], natural_weight: float) -> _Candidate:
    crossed = samples.cross_fit(inputs, samples.reweighted(natural_weight))
    likelihood = np.maximum(np.where(samples.errors, crossed, 1 - crossed), 1e-12)
    loss = float((-np.log(likelihood) @ samples.weights).mean())
    return _Candidate(inputs, natural_weight, crossed, loss, samples.measure(metrics.augrc, crossed, 0))


def _describe_conditions(names: Sequence[str], samples: RiskSamples, crossed: Array) -> Iterator[dict[str, Any]]:
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
            "weight": _rounded(samples.weights[rows].sum()),
            "error_rate": _rounded(samples.errors[rows].mean()),
            "mean_risk": _rounded(crossed[:, rows].mean()),
            "scores": {
                score: {key: _rounded(samples.measure(metric, values, number)) for key, metric in measured.items()}
                for score, values in (samples.scores | {"risk": crossed}).items()
            },
        }


def _rounded(value: Any) -> float | None:
    """A number of the card; None where it is not defined."""
    number = float(np.asarray(value).item())
    return round(number, 5) if math.isfinite(number) else None


def _draw_folds(cohort: Cohort, options: RiskOptions) -> Indices:
    """(repeat, tune recording): its fold; recordings of a patient are in the same one."""
    rows = [cohort.rows[index] for index in cohort.part("tune")]
    groups, numbers = np.unique([row.patient or f"recording {row.id}" for row in rows], return_inverse=True)
    rng = numpy_generator(options.seed, "risk folds")
    return np.stack([rng.permutation(len(groups))[numbers] % options.folds for _ in range(options.repeats)])


def _spread(indices: Indices, wanted: int) -> Indices:
    """At most `wanted` of the indices, evenly spread."""
    return indices[:: max(1, math.ceil(len(indices) / wanted))]


def _batches(indices: Indices, cohort: Cohort) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Batches of recordings of similar length, and where each starts."""
    ordered = indices[cohort.by_length(indices)]
    return ((start, ordered[start : start + _BATCH]) for start in range(0, len(ordered), _BATCH))
