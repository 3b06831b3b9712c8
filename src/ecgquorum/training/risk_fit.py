"""Fit the scores "distance" and "risk" of an ensemble, on the train and tune parts of its cohort."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ecgquorum import metrics
from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.cohorts import Cohort, hold_out_class
from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.ensemble.bundle import describe_fitted_on
from ecgquorum.ensemble.distance import FeatureDistance
from ecgquorum.ensemble.risk import RISK_INPUTS, RiskModel, risk_inputs
from ecgquorum.errors import CohortError, FittingError, MemberError
from ecgquorum.metrics import Array
from ecgquorum.metrics.logistic import fit_intercept, fit_monotone_logistic
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes.study import NATURAL
from ecgquorum.training.risk_choice import RiskSamples, choose_candidate, describe_conditions, round_figure
from ecgquorum.training.risk_conditions import Indices, RiskCondition, default_conditions

MIN_RECORDS = 50
"""Tune recordings that it takes to fit a risk."""

N_TRAIN = 2048
"""Training recordings that the distance is fitted on, at most."""

MAX_FEATURES = 2048
"""Features of a member for which a distance is fitted, at most: its matrix has the square of that many numbers."""

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

    def __post_init__(self) -> None:
        if not 0 < self.natural_weight <= 1:
            raise FittingError(f"risk: expected a natural_weight above 0 and up to 1, found {self.natural_weight}")
        for name, least in (("records", 1), ("folds", 2), ("repeats", 1)):
            if getattr(self, name) < least:
                raise FittingError(f"risk: expected {name} of at least {least}, found {getattr(self, name)}")


def fit_risk(ensemble: Ensemble, cohort: Cohort, options: RiskOptions | None = None) -> RiskModel:
    """Fit the feature distance on the train part and the risk on the tune part; the ensemble uses both from then on.

    The risk is fitted under natural, attacked and corrupted conditions. Its inputs, and the weight of the natural
    recordings in the fit, are those with the smallest cross-fitted loss among the ones that do not rank natural errors
    worse than 1 - max p (by AUGRC, cross-fitted). The intercept is then fitted on natural recordings alone, so that the
    risk is a probability for these. An ensemble for which this fails keeps the distance and the risk that it had.
    """
    cohort = hold_out_class(cohort, ensemble.card.get("hold_out"), required=False)
    _check(ensemble, cohort)
    before = ensemble.distance, ensemble.risk_model
    ensemble.risk_model = None
    try:
        ensemble.risk_model = _fit_model(ensemble, cohort, options or RiskOptions())
    except BaseException:
        ensemble.distance, ensemble.risk_model = before
        raise
    return ensemble.risk_model


def _fit_model(ensemble: Ensemble, cohort: Cohort, options: RiskOptions) -> RiskModel:
    """Fit and set the distance of the ensemble, and fit the risk."""
    ensemble.distance = _fit_distance(ensemble, cohort, options.progress)
    natural = _predict_natural(ensemble, cohort)
    conditions = list(default_conditions(ensemble.input) if options.conditions is None else options.conditions)
    samples = _collect(ensemble, cohort, natural, conditions, options)
    chosen = choose_candidate(samples)
    weights = samples.reweight(chosen.natural_weight)
    columns, natural_rows = samples.columns(chosen.inputs), samples.conditions == 0
    _, coefficients = fit_monotone_logistic(columns, samples.errors, weights)
    intercept = fit_intercept(columns[natural_rows] @ coefficients, samples.errors[natural_rows])
    crossed = samples.cross_fit(chosen.inputs, weights, calibrate_on=natural_rows)
    return RiskModel(
        chosen.inputs,
        tuple(coefficients.tolist()),
        intercept,
        describe_fitted_on(ensemble, cohort.data_hash),
        {
            "n_records": len(cohort.part("tune")),
            "folds": options.folds,
            "repeats": options.repeats,
            "seed": options.seed,
            "natural_weight": round_figure(chosen.natural_weight),
            "calibration_error": round_figure(
                metrics.probability_calibration_error(crossed.mean(axis=0)[natural_rows], samples.errors[natural_rows])
            ),
            "conditions": list(describe_conditions([NATURAL, *(one.name for one in conditions)], samples, crossed)),
        },
    )


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
        raise FittingError(f"a risk needs at least {MIN_RECORDS} tune recordings, found {n_records}")


def _fit_distance(ensemble: Ensemble, cohort: Cohort, progress: Progress) -> FeatureDistance | None:
    """Fit the distance on training recordings; None if a member has no features."""
    indices = spread_indices(cohort.part("train"), N_TRAIN)
    features: list[list[Array]] = []
    try:
        for start, some in _batches(indices, cohort):
            progress.update("features of training recordings", start, len(indices))
            features.append(ensemble.member_features(cohort.batch(some, ensemble.input))[1])
    except MemberError as error:
        progress.log(f"no feature distance: {error}")
        return None
    n_features = max(one.shape[1] for one in features[0])
    if n_features > MAX_FEATURES:
        progress.log(
            f"no feature distance: {n_features} features, more than {MAX_FEATURES}; its matrices would be huge"
        )
        return None
    order = np.concatenate([some for _, some in _batches(indices, cohort)])
    return FeatureDistance.fit([np.concatenate(one) for one in zip(*features, strict=True)], cohort.labels[order])


def _predict_natural(ensemble: Ensemble, cohort: Cohort) -> Prediction:
    """Predict the natural tune part; the ensemble's distance is scaled so that its median there is 1."""
    natural = ensemble.predict_part(cohort, "tune")
    if ensemble.distance is None or natural.distance is None:
        return natural
    median = max(float(np.median(natural.distance)), 1e-9)
    ensemble.distance = ensemble.distance.rescale(median)
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
    positions = spread_indices(np.arange(len(tune)), options.records)
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


def _draw_folds(cohort: Cohort, options: RiskOptions) -> Indices:
    """(repeat, tune recording): its fold; recordings of a patient are in the same one."""
    rows = [cohort.rows[index] for index in cohort.part("tune")]
    groups, numbers = np.unique([row.patient or f"recording {row.id}" for row in rows], return_inverse=True)
    rng = numpy_generator(options.seed, "risk folds")
    return np.stack([rng.permutation(len(groups))[numbers] % options.folds for _ in range(options.repeats)])


def spread_indices(indices: Indices, wanted: int) -> Indices:
    """At most `wanted` of the indices, evenly spread."""
    return indices[:: max(1, math.ceil(len(indices) / wanted))]


def _batches(indices: Indices, cohort: Cohort) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Batches of recordings of similar length, and where each starts."""
    ordered = indices[cohort.by_length(indices)]
    return ((start, ordered[start : start + _BATCH]) for start in range(0, len(ordered), _BATCH))
