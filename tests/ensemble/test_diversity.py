import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ecgquorum.ensemble.diversity import (
    adjusted_r2,
    augmentation_share,
    class_residual,
    error_correlation,
    linear_cka,
    report_diversity,
    whitened_r2,
)


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(500, 12))
    return a, a @ rng.normal(size=(12, 12)) + rng.normal(size=(500, 12)) * 2, rng.normal(size=(500, 12))


def test_adjusted_r2_agrees_with_least_squares(features):
    a, b, _ = features
    left = b - LinearRegression().fit(a, b).predict(a)
    plain = 1 - (left**2).sum() / ((b - b.mean(0)) ** 2).sum()
    assert adjusted_r2(a, b) == pytest.approx(1 - (1 - plain) * 499 / (499 - 12))


def test_r2_is_0_for_unrelated_and_1_for_mapped_features(features):
    a, _, c = features
    assert abs(adjusted_r2(a, c)) < 0.05
    assert adjusted_r2(a, a @ np.diag(np.arange(1.0, 13)) + 3) == pytest.approx(1)
    assert adjusted_r2(np.concatenate([a, a], axis=1), a) == pytest.approx(1)
    assert np.isnan(adjusted_r2(a, np.ones((500, 3))))
    assert np.isnan(adjusted_r2(a[:10], c[:10]))


def test_cka_ignores_rotation_and_scale(features):
    a, _, c = features
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))
    assert linear_cka(a, 5 * a @ rotation + 2) == pytest.approx(1)
    assert linear_cka(a, c) < 0.1


def test_error_correlation_by_hand():
    one, other = np.array([1, 1, 0, 0], dtype=bool), np.array([1, 0, 0, 1], dtype=bool)
    assert error_correlation(one, one) == pytest.approx(1)
    assert error_correlation(one, ~one) == pytest.approx(-1)
    assert error_correlation(one, other) == pytest.approx(0)
    assert np.isnan(error_correlation(one, np.zeros(4, dtype=bool)))


def test_a_report_is_plain_json_and_complete(features):
    labels = np.arange(500) % 3
    answers = np.stack([labels, labels, (labels + (np.arange(500) < 50)) % 3], axis=1)
    report = json.loads(json.dumps(report_diversity(list(features), labels, answers)))
    assert [pair["members"] for pair in report["pairs"]] == [[0, 1], [0, 2], [1, 2]]
    assert report["member_accuracy"] == pytest.approx([1, 1, 0.9])
    assert report["pairs"][0]["disagreement"] == 0
    assert report["pairs"][1]["disagreement"] == pytest.approx(0.1)
    assert report["pairs"][0]["error_correlation"] is None


def test_whitened_r2_ignores_linear_maps_and_huge_directions(features):
    a, b, c = features
    inflate = np.diag([1000.0] + [1.0] * 11)
    mapping = np.random.default_rng(1).normal(size=(12, 12))
    assert whitened_r2(a, a @ inflate @ mapping + 5) == pytest.approx(1)
    assert abs(whitened_r2(a, c)) < 0.03
    assert 0.1 < whitened_r2(a, b) < 0.95
    assert whitened_r2(a, b @ mapping @ inflate) == pytest.approx(whitened_r2(b, a), abs=1e-6)
    hidden = np.concatenate([a, 1e4 * c[:, :1]], axis=1)
    assert whitened_r2(hidden, a) > 0.99 > 0.1 > adjusted_r2(a, hidden)
    assert np.isnan(whitened_r2(a[:10], c[:10])) and np.isnan(whitened_r2(a, np.ones((500, 3))))


def test_within_classes_a_common_class_is_nothing_in_common(features):
    a, _, c = features
    labels = np.arange(500) % 4
    of_class = 10 * np.eye(4, 12)[labels]
    one, other = a + of_class, c + of_class
    assert whitened_r2(one, other) > 0.2
    residuals = [class_residual(side, labels) for side in (one, other)]
    assert abs(whitened_r2(*residuals, n_means=4)) < 0.03
    assert residuals[0][labels == 2].mean(axis=0) == pytest.approx(0, abs=1e-12)


def test_the_share_of_an_augmentation_by_hand(features):
    a = features[0]
    assert augmentation_share(np.stack([a, a])) == 0
    assert augmentation_share(np.stack([0 * a + 1, 0 * a - 1])) == 1
    flipped = np.array([[[1.0, 2.0], [-1.0, 2.0]], [[1.0, -2.0], [-1.0, -2.0]]])  # variance 1 of records, 4 of the flip
    assert augmentation_share(flipped) == pytest.approx(4 / 5)
    assert np.isnan(augmentation_share(np.zeros((2, 5, 3))))


def test_a_report_with_logits_and_copies_says_what_members_share_within_classes(features):
    a, _, c = features
    labels = np.arange(500) % 3
    logits = [a[:, :3], a[:, :3] @ np.diag([2.0, 2.0, 2.0]) + a[:, 3:4], c[:, :3]]
    copies = {"flip": [np.stack([z, -z]) for z in features]}
    answers = np.stack([one.argmax(axis=1) for one in logits], axis=1)
    report = json.loads(json.dumps(report_diversity(list(features), labels, answers, logits, copies)))
    same, _, unrelated = report["pairs"]
    assert same["class_logit_r2"] == pytest.approx(1) and same["class_logit_cka"] == pytest.approx(1)
    assert abs(unrelated["class_logit_r2"]) < 0.05 and unrelated["class_logit_cka"] < 0.05
    assert abs(unrelated["class_feature_r2"]) < 0.3
    assert report["augmentation_share"]["flip"] == pytest.approx([1, 1, 1], abs=0.02)
