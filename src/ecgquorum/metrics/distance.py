"""Distance of features from those of the training recordings: Mahalanobis distance (Lee et al. 2018)."""

import numpy as np

from ecgquorum.metrics.weighting import Array, Labels

_CONSTANT = 1e-6  # features that vary less than this share of the most variable one are left out


def shrink_covariance(centred: Array) -> Array:
    """(feature, feature): (1 - s) S + s tr(S)/D I with the shrinkage s of Ledoit and Wolf (2004).

    centred: (record, feature), with a mean of 0; S = centred^T centred / n
    """
    n_records, n_features = centred.shape
    covariance = centred.T @ centred / n_records
    mean_variance = np.trace(covariance) / n_features
    spread = ((covariance - mean_variance * np.eye(n_features)) ** 2).sum()
    noise = ((centred**2).sum(axis=1) ** 2).sum() / n_records**2 - (covariance**2).sum() / n_records
    share = min(1.0, noise / spread) if spread > 0 else 1.0
    return np.asarray((1 - share) * covariance + share * mean_variance * np.eye(n_features))


def fit_mahalanobis(features: Array, labels: Labels) -> tuple[Array, Array]:
    """Means of the classes (class, feature), and W (feature, feature) with W W^T = inverse of their shared covariance.

    The covariance is of the residuals from the class means, each feature scaled to a standard deviation of 1, then
    shrunk. Features that do not vary have zeros in W. Classes without recordings have no mean.

    features: (record, feature) · labels: (record,)
    """
    present, numbers = np.unique(labels, return_inverse=True)
    means = np.stack([features[labels == label].mean(axis=0) for label in present])
    residuals = features - means[numbers]
    deviations = residuals.std(axis=0)
    varies = deviations > _CONSTANT * deviations.max(initial=0.0)
    whitening = np.zeros((features.shape[1],) * 2)
    if varies.any():
        scaled = residuals[:, varies] / deviations[varies]
        precision = np.linalg.inv(shrink_covariance(scaled))
        whitening[np.ix_(varies, varies)] = np.linalg.cholesky(precision) / deviations[varies, None]
    return means, whitening


def mahalanobis_distance(features: Array, means: Array, whitening: Array) -> Array:
    """(record,): min_c sqrt(|W^T (f - mean_c)|^2 / D), with D the number of features that vary; about 1 in training.

    features: (record, feature) · means: (class, feature) · whitening: W, (feature, feature)
    """
    n_varying = max(1, int(whitening.any(axis=1).sum()))
    with np.errstate(invalid="ignore", over="ignore"):  # features that are not finite have no finite distance
        moved, centres = features @ whitening, means @ whitening
        squared = ((moved[:, None] - centres) ** 2).sum(axis=2)
    return np.asarray(np.sqrt(squared.min(axis=1) / n_varying))
