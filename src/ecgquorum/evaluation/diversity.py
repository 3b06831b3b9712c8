"""Diversity of an ensemble's members on recordings that none was trained on, with intervals."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations

import numpy as np

from ecgquorum.ensemble.diversity import adjusted_r2, linear_cka
from ecgquorum.evaluation.metric_values import MetricValue
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import UNDEFINED, Array, Estimate, Flags, bootstrap, jackknife, weighted_mean


def diversity_values(features: list[Array | None], predictions: LabelledPredictions) -> Iterator[MetricValue]:
    """Compare every pair of members.

    Features may be of more recordings than the predictions. Their intervals come from a jackknife: recordings drawn
    with replacement make a linear fit look better than it is.

    features: (record, feature) of each member; None where it has none
    """
    for i, j in permutations(range(len(features)), 2):
        yield _feature_value("adjusted_r2", adjusted_r2, features, (i, j), f"{i}→{j}")
    predicted = predictions.raw_member_probs.argmax(axis=2)
    errors = predicted != predictions.labels[:, None]
    for i, j in combinations(range(len(features)), 2):
        pair = f"{i}, {j}"
        yield _feature_value("linear_cka", linear_cka, features, (i, j), pair)
        disagreement = partial(weighted_mean, predicted[:, i] != predicted[:, j])
        yield MetricValue("disagreement", pair, bootstrap(disagreement, len(predicted)))
        correlation = _error_correlation(errors[:, i], errors[:, j])
        reason = "" if correlation.is_defined else "a member makes no errors, or only errors"
        yield MetricValue("error_correlation", pair, correlation, reason)


def _feature_value(
    name: str,
    metric: Callable[[Array, Array], float],
    features: list[Array | None],
    pair: tuple[int, int],
    detail: str,
) -> MetricValue:
    one, other = (features[index] for index in pair)
    if one is None or other is None:
        return MetricValue(name, detail, UNDEFINED, "a member without features")
    found = jackknife(lambda kept: metric(one[kept], other[kept]), len(one))
    reason = "" if found.is_defined else f"{len(one)} recordings are too few for {one.shape[1]} features"
    return MetricValue(name, detail, found, reason, len(one))


def _error_correlation(one: Flags, other: Flags) -> Estimate:
    def metric(weights: Array) -> Array:
        a, b = weighted_mean(one, weights), weighted_mean(other, weights)
        spread = np.sqrt(a * (1 - a) * b * (1 - b))
        covariance = weighted_mean(one & other, weights) - a * b
        return np.asarray(np.divide(covariance, spread, out=np.full_like(a, np.nan), where=spread > 1e-12))

    return bootstrap(metric, len(one))
