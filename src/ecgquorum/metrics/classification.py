"""Accuracy, F1 and the confusion matrix."""

import numpy as np

from ecgquorum.metrics.weighting import Array, Flags, Labels, as_weights, ratio, weighted_mean


def accuracy(correct: Flags, weights: Array | None = None) -> Array:
    """(draw,): the share of correct predictions."""
    return weighted_mean(correct, weights)


def f1_score(labels: Labels, predicted: Labels, n_classes: int, weights: Array | None = None) -> Array:
    """(draw, class): F1 = 2 TP / (2 TP + FP + FN); NaN for a class that is neither labelled nor predicted."""
    weights = as_weights(weights, len(labels))
    is_label, is_predicted = np.eye(n_classes)[labels], np.eye(n_classes)[predicted]
    return ratio(2 * (weights @ (is_label * is_predicted)), weights @ (is_label + is_predicted))


def macro_f1(labels: Labels, predicted: Labels, n_classes: int, weights: Array | None = None) -> Array:
    """(draw,): the mean of F1 over the classes that are labelled or predicted."""
    return np.asarray(np.nanmean(f1_score(labels, predicted, n_classes, weights), axis=1))


def confusion_matrix(labels: Labels, predicted: Labels, n_classes: int) -> Labels:
    """(label, predicted class): counts of recordings."""
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(counts, (labels, predicted), 1)
    return counts
