"""All metrics of one ensemble under one condition, each with its interval or the reason why it has no value."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from ecgquorum import metrics
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import UNDEFINED, Array, Estimate, Flags, Labels, bootstrap

COVERAGES = (0.8, 0.9)
ONE_MEMBER = "one member cannot disagree"


@dataclass(frozen=True)
class MetricValue:
    """The value of a metric.

    detail:    which class or pair of members, where there is one value for each
    reason:    why the value is not defined
    n_records: how many recordings it was computed on, where not on all of the condition
    """

    metric: str
    detail: str
    estimate: Estimate
    reason: str = ""
    n_records: int | None = None


def metric_values(
    predictions: LabelledPredictions, classes: tuple[str, ...], only: str | None = None
) -> Iterator[MetricValue]:
    """Compute every metric of the predictions, or the one called `only`."""
    for one in (*_label_metrics(predictions, classes), *_uncertainty_metrics(predictions)):
        if only in (None, one.name):
            found = bootstrap(one.metric, len(predictions.labels)) if one.metric else UNDEFINED
            yield MetricValue(one.name, one.detail, found, "" if found.is_defined else one.reason)


@dataclass(frozen=True)
class _Metric:
    """A metric of the weights (draw, record), None where it cannot have a value; `reason` says why it may have none."""

    name: str
    metric: Callable[[Array], Array] | None
    reason: str = ""
    detail: str = ""


def _label_metrics(predictions: LabelledPredictions, classes: tuple[str, ...]) -> Iterator[_Metric]:
    labels, predicted, n_classes = predictions.labels, predictions.predicted, len(classes)
    yield _Metric("accuracy", partial(metrics.accuracy, predictions.correct))
    yield _Metric("macro_f1", partial(metrics.macro_f1, labels, predicted, n_classes))
    for index, name in enumerate(classes):
        f1 = partial(_class_f1, labels, predicted, n_classes, index) if (labels == index).any() else None
        yield _Metric("f1", f1, "no recordings of this class", name)
    for suffix, probs in (("_raw", predictions.raw_probs), ("", predictions.probs)):
        yield _Metric(f"ece{suffix}", partial(metrics.expected_calibration_error, probs, labels))
        yield _Metric(f"brier{suffix}", partial(metrics.brier_score, probs, labels))


def _uncertainty_metrics(predictions: LabelledPredictions) -> Iterator[_Metric]:
    correct, uncertainty = predictions.correct, predictions.uncertainty

    def area(curve: Callable[[Flags, Array, Array], Array]) -> Callable[[Array], Array]:
        return lambda weights: metrics.threshold_auc(curve(correct, uncertainty, weights))

    missing = "no incorrect predictions" if correct.all() else "no correct predictions"
    found = [
        _Metric("r_cc_auc", area(metrics.correct_certain_ratio), "no prediction is certain"),
        _Metric("r_iu_auc", area(metrics.incorrect_uncertain_ratio), "no incorrect predictions"),
        _Metric("ua_auc", area(metrics.uncertainty_accuracy)),
        _Metric("uncertainty_gap", partial(metrics.uncertainty_gap, correct, uncertainty), missing),
        _Metric("mean_uncertainty", partial(metrics.weighted_mean, uncertainty)),
        _Metric("augrc", partial(metrics.augrc, ~correct, uncertainty)),
        _Metric("aurc", partial(metrics.aurc, ~correct, uncertainty)),
    ]
    for coverage in COVERAGES:
        risk = partial(metrics.risk_at_coverage, ~correct, uncertainty, coverage)
        found.append(_Metric(f"risk_at_{100 * coverage:.0f}", risk))
    for one in found:
        yield _Metric(one.name, None, ONE_MEMBER) if predictions.single_member else one


def _class_f1(labels: Labels, predicted: Labels, n_classes: int, index: int, weights: Array) -> Array:
    return metrics.f1_score(labels, predicted, n_classes, weights)[:, index]
