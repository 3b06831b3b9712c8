"""Mahalanobis distance: closed forms, and scikit-learn's covariance as oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf

from ecgquorum.metrics.distance import fit_mahalanobis, mahalanobis_distance, shrink_covariance


def draw(seed, n=60, d=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d))


@given(seed=st.integers(0, 200), n=st.integers(3, 40), d=st.integers(1, 12))
def test_shrunk_covariance_is_that_of_scikit_learn(seed, n, d):
    centred = draw(seed, n, d)
    centred -= centred.mean(axis=0)
    expected, _ = ledoit_wolf(centred, assume_centered=True)
    np.testing.assert_allclose(shrink_covariance(centred), expected, atol=1e-9 * np.abs(expected).max())


def test_distance_is_the_quadratic_form_of_the_nearest_class():
    features, labels = draw(0), np.arange(60) % 3
    means, whitening = fit_mahalanobis(features, labels)
    residuals = features - means[labels]
    scale = np.diag(residuals.std(axis=0))
    covariance = scale @ shrink_covariance(residuals / residuals.std(axis=0)) @ scale
    new = draw(1, 10)
    gaps = new[:, None] - means
    squared = np.einsum("rcf,fg,rcg->rc", gaps, np.linalg.inv(covariance), gaps)
    np.testing.assert_allclose(mahalanobis_distance(new, means, whitening), np.sqrt(squared.min(axis=1) / 5))


def test_means_of_classes_have_distance_zero_and_training_recordings_about_one():
    features, labels = draw(2, 4000), np.arange(4000) % 2
    features[labels == 1] += 40
    means, whitening = fit_mahalanobis(features, labels)
    np.testing.assert_allclose(mahalanobis_distance(means, means, whitening), 0, atol=1e-9)
    assert (mahalanobis_distance(features, means, whitening) ** 2).mean() == pytest.approx(1, abs=0.05)


@given(seed=st.integers(0, 50), factor=st.floats(1e-3, 1e3))
def test_scale_and_offset_of_a_feature_do_not_matter(seed, factor):
    features, labels = draw(seed), np.arange(60) % 2
    other = features * np.array([factor, 1, 1, 1, 1]) + 7
    expected = mahalanobis_distance(features, *fit_mahalanobis(features, labels))
    np.testing.assert_allclose(mahalanobis_distance(other, *fit_mahalanobis(other, labels)), expected, rtol=1e-6)


def test_features_that_are_not_finite_have_no_finite_distance():
    features = draw(4)
    fitted = fit_mahalanobis(features, np.zeros(60, int))
    features[0, 0], features[1, 1], features[2, 2] = np.inf, np.nan, 1e300
    found = mahalanobis_distance(features, *fitted)
    assert not np.isfinite(found[:3]).any() and np.isfinite(found[3:]).all()


def test_constant_features_and_absent_classes_are_left_out():
    features, labels = draw(3), np.where(np.arange(60) % 2, 4, 1)
    widened = np.concatenate([features, np.full((60, 1), 3.0)], axis=1)
    means, whitening = fit_mahalanobis(widened, labels)
    assert means.shape == (2, 6) and not whitening[5].any() and not whitening[:, 5].any()
    expected = mahalanobis_distance(features, *fit_mahalanobis(features, labels))
    np.testing.assert_allclose(mahalanobis_distance(widened, means, whitening), expected)
    assert not mahalanobis_distance(np.ones((4, 3)), *fit_mahalanobis(np.ones((4, 3)), np.zeros(4, int))).any()
