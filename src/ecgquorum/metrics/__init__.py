"""Metrics of predictions: pure functions of arrays, each with one value for every draw of recordings."""

from ecgquorum.metrics.bootstrap import UNDEFINED, Estimate, bootstrap, jackknife
from ecgquorum.metrics.calibration import (
    apply_temperature,
    brier_score,
    expected_calibration_error,
    fit_temperature,
)
from ecgquorum.metrics.classification import accuracy, confusion_matrix, f1_score, macro_f1
from ecgquorum.metrics.selective import augrc, aurc, deferral_curve, risk_at_coverage
from ecgquorum.metrics.uncertainty import (
    correct_certain_ratio,
    incorrect_uncertain_ratio,
    threshold_auc,
    thresholds,
    uncertainty_accuracy,
    uncertainty_gap,
)
from ecgquorum.metrics.weighting import Array, Flags, Labels, weighted_mean

__all__ = [
    "UNDEFINED",
    "Array",
    "Estimate",
    "Flags",
    "Labels",
    "accuracy",
    "apply_temperature",
    "augrc",
    "aurc",
    "bootstrap",
    "brier_score",
    "confusion_matrix",
    "correct_certain_ratio",
    "deferral_curve",
    "expected_calibration_error",
    "f1_score",
    "fit_temperature",
    "incorrect_uncertain_ratio",
    "jackknife",
    "macro_f1",
    "risk_at_coverage",
    "threshold_auc",
    "thresholds",
    "uncertainty_accuracy",
    "uncertainty_gap",
    "weighted_mean",
]
