"""Diversity of members: of their features, predictions and errors."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def adjusted_r2(regressor: Array, regressand: Array) -> float:
    """How much of B's variance A predicts linearly, adjusted for the number of regressors; 0 for independent features.

    R2_adj = 1 - (1 - R2) (N - 1) / (N - p - 1), with p the rank of the centred regressor. (record, feature) each;
    wants many more records than features: NaN otherwise, or when B does not vary.
    """
    a, b = _centre(regressor), _centre(regressand)
    n_records = len(a)
    basis, singular, _ = np.linalg.svd(a, full_matrices=False)
    rank = int((singular > singular.max(initial=0.0) * 1e-10).sum())
    total = float((b**2).sum())
    if total == 0 or n_records - rank - 1 <= 0:
        return float("nan")
    left = total - float(((basis[:, :rank].T @ b) ** 2).sum())
    return 1 - left / total * (n_records - 1) / (n_records - rank - 1)


def linear_cka(one: Array, other: Array) -> float:
    """Centred kernel alignment with linear kernels: 1 for features equal up to rotation and scale, 0 for unrelated."""
    a, b = _centre(one), _centre(other)
    norm = float(np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))
    return float(np.linalg.norm(a.T @ b) ** 2) / norm if norm else float("nan")


def class_residual(values: Array, labels: NDArray[np.int64]) -> Array:
    """Subtract from each record (record, feature) the mean of its class: what is left to agree on within classes."""
    residuals = np.array(values, dtype=np.float64)
    for label in np.unique(labels):
        residuals[labels == label] -= residuals[labels == label].mean(axis=0)
    return residuals


def whitened_r2(one: Array, other: Array, *, n_means: int = 1) -> float:
    """Mean squared canonical correlation, adjusted: 1 for features equal up to a linear map, 0 for independent ones.

    R2 = |Q1' Q2|_F^2 / min(p, q), with Q1 and Q2 orthonormal bases of the centred features, of ranks p and q. Every
    direction counts alike, whatever its variance. Independent features give f = max(p, q) / (N - n_means), and the
    result is (R2 - f) / (1 - f); NaN where f is 1 or more, or a side does not vary.

    n_means: number of means that were subtracted, the number of classes for `class_residual`
    """
    bases = [_orthonormal_basis(side) for side in (one, other)]
    ranks = [basis.shape[1] for basis in bases]
    if min(ranks) == 0 or max(ranks) >= len(one) - n_means:
        return float("nan")
    r2 = float(((bases[0].T @ bases[1]) ** 2).sum()) / min(ranks)
    floor = max(ranks) / (len(one) - n_means)
    return float((r2 - floor) / (1 - floor))


def augmentation_share(copies: Array) -> float:
    """Share of the features' variance that is between augmented copies of the same recording; 0 for invariant ones.

    sum |z_rc - mean_c z_rc|^2 / sum |z_rc - mean_rc z_rc|^2 for copies (copy, record, feature); NaN for no variance.
    """
    copies = np.asarray(copies, dtype=np.float64)
    total = float(((copies - copies.mean(axis=(0, 1))) ** 2).sum())
    return float(((copies - copies.mean(axis=0)) ** 2).sum()) / total if total else float("nan")


def error_correlation(one_wrong: NDArray[np.bool_], other_wrong: NDArray[np.bool_]) -> float:
    """Correlation of two members' errors; NaN when one of them makes none, or only errors."""
    a, b = _centre(one_wrong[:, None].astype(float))[:, 0], _centre(other_wrong[:, None].astype(float))[:, 0]
    norm = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float(a @ b) / norm if norm else float("nan")


def report_diversity(
    features: list[Array],
    labels: NDArray[np.int64],
    answers: NDArray[np.int64],
    logits: list[Array] | None = None,
    copies: dict[str, list[Array]] | None = None,
) -> dict[str, Any]:
    """Every pair of members compared, as plain numbers; NaN becomes None.

    features: one (record, feature) array a member · labels: (record,) · answers: (record, member)
    logits:   one (record, class) array a member: also compare members within classes
    copies:   name of an augmentation -> one (copy, record, feature) array a member: also report its share of variance
    """
    wrong = answers != labels[:, None]
    within = _within_classes(features, logits, labels) if logits else {}
    pairs = [
        {
            "members": [i, j],
            "adjusted_r2": _plain(adjusted_r2(features[i], features[j])),
            "adjusted_r2_back": _plain(adjusted_r2(features[j], features[i])),
            "linear_cka": _plain(linear_cka(features[i], features[j])),
            **within.get((i, j), {}),
            "disagreement": float((answers[:, i] != answers[:, j]).mean()),
            "error_correlation": _plain(error_correlation(wrong[:, i], wrong[:, j])),
        }
        for i, j in combinations(range(len(features)), 2)
    ]
    shares = {name: [_plain(augmentation_share(one)) for one in members] for name, members in (copies or {}).items()}
    facts = {"n_records": len(labels), "member_accuracy": (1 - wrong.mean(axis=0)).tolist(), "pairs": pairs}
    return facts | ({"augmentation_share": shares} if shares else {})


def _within_classes(
    features: list[Array], logits: list[Array], labels: NDArray[np.int64]
) -> dict[tuple[int, int], dict[str, float | None]]:
    """Compare every pair's class residuals: whitened features, and differences of logits."""
    n_means = len(np.unique(labels))
    rest = [class_residual(one, labels) for one in features]
    read = [class_residual(one - one.mean(axis=1, keepdims=True), labels) for one in logits]
    return {
        (i, j): {
            "class_feature_r2": _plain(whitened_r2(rest[i], rest[j], n_means=n_means)),
            "class_logit_r2": _plain(whitened_r2(read[i], read[j], n_means=n_means)),
            "class_logit_cka": _plain(linear_cka(read[i], read[j])),
        }
        for i, j in combinations(range(len(features)), 2)
    }


def _orthonormal_basis(values: Array) -> Array:
    """Return (record, rank); directions below a millionth of the largest are rounding errors of single precision."""
    basis, singular, _ = np.linalg.svd(_centre(values), full_matrices=False)
    kept: Array = basis[:, singular > singular.max(initial=0.0) * 1e-6]
    return kept


def _centre(values: Array) -> Array:
    return np.asarray(values - values.mean(axis=0), dtype=np.float64)


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None
