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


def error_correlation(one_wrong: NDArray[np.bool_], other_wrong: NDArray[np.bool_]) -> float:
    """Correlation of two members' errors; NaN when one of them makes none, or only errors."""
    a, b = _centre(one_wrong[:, None].astype(float))[:, 0], _centre(other_wrong[:, None].astype(float))[:, 0]
    norm = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float(a @ b) / norm if norm else float("nan")


def report_diversity(features: list[Array], labels: NDArray[np.int64], answers: NDArray[np.int64]) -> dict[str, Any]:
    """Every pair of members compared, as plain numbers; NaN becomes None.

    features: one (record, feature) array a member · labels: (record,) · answers: (record, member)
    """
    wrong = answers != labels[:, None]
    pairs = [
        {
            "members": [i, j],
            "adjusted_r2": _plain(adjusted_r2(features[i], features[j])),
            "adjusted_r2_back": _plain(adjusted_r2(features[j], features[i])),
            "linear_cka": _plain(linear_cka(features[i], features[j])),
            "disagreement": float((answers[:, i] != answers[:, j]).mean()),
            "error_correlation": _plain(error_correlation(wrong[:, i], wrong[:, j])),
        }
        for i, j in combinations(range(len(features)), 2)
    ]
    return {"n_records": len(labels), "member_accuracy": (1 - wrong.mean(axis=0)).tolist(), "pairs": pairs}


def _centre(values: Array) -> Array:
    return np.asarray(values - values.mean(axis=0), dtype=np.float64)


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None
