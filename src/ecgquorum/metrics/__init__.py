"""Metrics of predictions: pure functions of arrays, each with one value for every draw of recordings."""

from ecgquorum.metrics.bootstrap import (
    UNDEFINED,
    Estimate,
    Metric,
    bootstrap,
    jackknife,
    paired_difference,
    replicate,
)
from ecgquorum.metrics.calibration import (
    adaptive_calibration_error,
    apply_temperature,
    brier_score,
    expected_calibration_error,
    fit_temperature,
    negative_log_likelihood,
    probability_calibration_error,
)
from ecgquorum.metrics.classification import accuracy, confusion_matrix, f1_score, macro_f1
from ecgquorum.metrics.error_detection import error_aupr, error_auroc
from ecgquorum.metrics.out_of_distribution import fpr_at_tpr, ood_auroc
from ecgquorum.metrics.scores import SCORES
from ecgquorum.metrics.selective import (
    augrc,
    aurc,
    coverage_at_risk,
    deferral_curve,
    errors_caught,
    risk_at_coverage,
)
from ecgquorum.metrics.uncertainty import (
    correct_certain_ratio,
    incorrect_uncertain_ratio,
    threshold_auc,
    threshold_mean,
    thresholds,
    uncertainty_accuracy,
    uncertainty_gap,
)
from ecgquorum.metrics.weighting import Array, Flags, Labels, weighted_mean

__all__ = [
    "SCORES",
    "UNDEFINED",
    "Array",
    "Estimate",
    "Flags",
    "Labels",
    "Metric",
    "accuracy",
    "adaptive_calibration_error",
    "apply_temperature",
    "augrc",
    "aurc",
    "bootstrap",
    "brier_score",
    "confusion_matrix",
    "correct_certain_ratio",
    "coverage_at_risk",
    "deferral_curve",
    "error_aupr",
    "error_auroc",
    "errors_caught",
    "expected_calibration_error",
    "f1_score",
    "fit_temperature",
    "fpr_at_tpr",
    "incorrect_uncertain_ratio",
    "jackknife",
    "macro_f1",
    "negative_log_likelihood",
    "ood_auroc",
    "paired_difference",
    "probability_calibration_error",
    "replicate",
    "risk_at_coverage",
    "threshold_auc",
    "threshold_mean",
    "thresholds",
    "uncertainty_accuracy",
    "uncertainty_gap",
    "weighted_mean",
]
