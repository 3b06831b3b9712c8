"""All metrics of one ensemble under one condition, each with its interval or the reason why it has no value."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ecgquorum import metrics
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import UNDEFINED, Array, Estimate, Flags, Labels, bootstrap
from ecgquorum.metrics.scores import DISAGREEMENT_SCORES
from ecgquorum.metrics.selective import BUDGET

COVERAGES = (0.8, 0.9)
RISK = 0.05
"""The error rate that is accepted where the coverage that keeps to it is counted."""

ONE_MEMBER = "one member cannot disagree"


@dataclass(frozen=True)
class MetricValue:
    """The value of a metric.

    detail:    which class, score or pair of members, where there is one value for each
    reason:    why the value is not defined
    n_records: how many recordings it was computed on, where not on all of the condition
    """

    metric: str
    detail: str
    estimate: Estimate
    reason: str = ""
    n_records: int | None = None


def metric_values(
    predictions: LabelledPredictions, classes: tuple[str, ...], only: str | None = None, normalise: str = "training"
) -> Iterator[MetricValue]:
    """Compute every metric of the predictions, or the one called `only`.

    normalise: how the uncertainty was normalised; under "authors", R_cc, R_iu and UA are means over thresholds
    """
    area = metrics.threshold_mean if normalise == "authors" else metrics.threshold_auc
    by_uncertainty = (_uncertainty_metrics(predictions, area), _score_metrics(predictions))
    for one in chain(_label_metrics(predictions, classes), *by_uncertainty):
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
        yield _Metric(f"adaptive_ece{suffix}", partial(metrics.adaptive_calibration_error, probs, labels))
        yield _Metric(f"brier{suffix}", partial(metrics.brier_score, probs, labels))
        yield _Metric(f"nll{suffix}", partial(metrics.negative_log_likelihood, probs, labels))


def _uncertainty_metrics(predictions: LabelledPredictions, area: Callable[[Array], Array]) -> Iterator[_Metric]:
    correct, uncertainty = predictions.correct, predictions.uncertainty

    def under(curve: Callable[[Flags, Array, Array], Array]) -> Callable[[Array], Array]:
        return lambda weights: area(curve(correct, uncertainty, weights))

    missing = _missing(correct)
    found = [
        _Metric("r_cc_auc", under(metrics.correct_certain_ratio)),
        _Metric("r_iu_auc", under(metrics.incorrect_uncertain_ratio), "no incorrect predictions"),
        _Metric("ua_auc", under(metrics.uncertainty_accuracy)),
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


def _score_metrics(predictions: LabelledPredictions) -> Iterator[_Metric]:
    """How well each uncertainty score ranks the errors."""
    errors = ~predictions.correct
    for name, values in predictions.scores().items():
        found = (
            _Metric("error_auroc", partial(metrics.error_auroc, errors, values), _missing(~errors), name),
            _Metric("error_aupr", partial(metrics.error_aupr, errors, values), "no incorrect predictions", name),
            _Metric("aurc", partial(metrics.aurc, errors, values), "", name),
            _Metric("augrc", partial(metrics.augrc, errors, values), "", name),
            _Metric(
                f"errors_caught_at_{100 * BUDGET:.0f}",
                partial(metrics.errors_caught, errors, values, BUDGET),
                "no incorrect predictions",
                name,
            ),
            _Metric(
                f"coverage_at_risk_{100 * RISK:.0f}", partial(metrics.coverage_at_risk, errors, values, RISK), "", name
            ),
        )
        silent = is_silent(predictions, name)
        yield from (_Metric(one.name, None, ONE_MEMBER, name) if silent else one for one in found)


def is_silent(predictions: LabelledPredictions, score: str) -> bool:
    """Whether a score compares members and there is one only; "": the uncertainty, which does."""
    return predictions.single_member and (score in DISAGREEMENT_SCORES or not score)


def _missing(correct: Flags) -> str:
    return "no incorrect predictions" if correct.all() else "no correct predictions"


def _class_f1(labels: Labels, predicted: Labels, n_classes: int, index: int, weights: Array) -> Array:
    return metrics.f1_score(labels, predicted, n_classes, weights)[:, index]
