import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ecgquorum.ensemble.diversity import adjusted_r2, error_correlation, linear_cka, report_diversity


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
