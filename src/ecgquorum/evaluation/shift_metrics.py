"""Metrics of recordings that differ from those of training: prediction sets, deferral, detection."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ecgquorum import metrics
from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.evaluation.metric_values import ONE_MEMBER, MetricValue, is_silent
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import UNDEFINED, Array, Labels, bootstrap
from ecgquorum.metrics.conformal import conformal_quantile, prediction_sets
from ecgquorum.metrics.selective import BUDGET

ALPHA = 0.1
"""The share of prediction sets that may miss the true class."""


def draw_halves(n_records: int, seed: int) -> Labels:
    """(record,): 0 or 1; prediction sets of each half are fitted on the other."""
    return np.asarray(numpy_generator(seed, "conformal halves").permutation(n_records) % 2)


def shift_values(
    predictions: LabelledPredictions,
    natural: LabelledPredictions,
    positions: Labels,
    halves: Labels,
    classes: Sequence[str],
) -> Iterator[MetricValue]:
    """Compare recordings under a condition with all natural ones, by which sets and thresholds are fitted.

    positions: of the condition's recordings among the natural ones · halves: of the natural ones
    """
    quantiles = np.array([_fit_quantile(natural.at(np.flatnonzero(halves != half))) for half in (0, 1)])
    sets = prediction_sets(predictions.probs, quantiles[halves[positions]])
    n_records, labels = len(positions), predictions.labels
    covered, size = sets[np.arange(n_records), labels], sets.sum(axis=1).astype(np.float64)
    level = f"{100 * (1 - ALPHA):.0f} %"
    for name, values in (("conformal_coverage", covered), ("conformal_set_size", size)):
        yield MetricValue(name, level, bootstrap(partial(metrics.weighted_mean, values), n_records))
    for index, name in enumerate(classes):
        share = partial(metrics.weighted_mean, predictions.predicted == index)
        yield MetricValue("predicted_share", name, bootstrap(share, n_records))
    known, found = natural.scores(), predictions.scores()
    for score, values in found.items():
        if is_silent(predictions, score):
            yield MetricValue(_DEFERRED, score, UNDEFINED, ONE_MEMBER)
            continue
        deferred = values > np.quantile(known[score], 1 - BUDGET, method="higher")
        yield MetricValue(_DEFERRED, score, bootstrap(partial(metrics.weighted_mean, deferred), n_records))
        missed = ~predictions.correct & ~deferred
        yield MetricValue(_MISSED, score, bootstrap(partial(metrics.weighted_mean, missed), n_records))


_DEFERRED, _MISSED = f"deferred_at_{100 * BUDGET:.0f}", f"missed_errors_at_{100 * BUDGET:.0f}"


def _fit_quantile(natural: LabelledPredictions) -> float:
    return conformal_quantile(natural.probs, natural.labels, ALPHA) if len(natural.labels) else 1.0


def ood_values(unknown: LabelledPredictions, natural: LabelledPredictions) -> Iterator[MetricValue]:
    """How well each score tells recordings out of distribution from the natural ones that they stand for."""
    known, found, n_records = natural.scores(), unknown.scores(), len(natural.labels)
    for score, values in found.items():
        if is_silent(unknown, score):
            yield MetricValue("ood_auroc", score, UNDEFINED, ONE_MEMBER)
            continue
        pair: tuple[Array, Array] = (known[score], values)
        yield MetricValue("ood_auroc", score, bootstrap(partial(metrics.ood_auroc, *pair), n_records))
        yield MetricValue("ood_fpr_at_95", score, bootstrap(partial(metrics.fpr_at_tpr, *pair), n_records))
    confident = unknown.probs.max(axis=1)
    yield MetricValue("mean_confidence", "", bootstrap(partial(metrics.weighted_mean, confident), n_records))
