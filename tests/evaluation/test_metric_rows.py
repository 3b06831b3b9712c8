"""What is measured of answers, against a recomputation by other means."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from ecgquorum.evaluation.metric_rows import Answers, measured


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_calibrated_measures_are_those_of_tempered_probabilities(temperature):
    rng = np.random.default_rng(3)
    member_probs = rng.dirichlet(np.ones(3), size=(200, 2))
    truth = rng.integers(3, size=200)
    answers = Answers(truth, member_probs, rng.random(200), temperature)
    found = {one.measure: one.estimate.value for one in measured(answers, ("a", "b", "c")) if not one.detail}
    raised = member_probs.mean(axis=1) ** (1 / temperature)
    sharpened = raised / raised.sum(axis=1, keepdims=True)
    assert found["brier_calibrated"] == pytest.approx(
        brier_score_loss(np.eye(3)[truth], sharpened, scale_by_half=False)
    )
    assert found["ece_calibrated"] == pytest.approx(_calibration_error(sharpened, truth))
    if temperature == 1.0:
        assert found["brier"] == pytest.approx(found["brier_calibrated"])
        assert found["ece"] == pytest.approx(found["ece_calibrated"])
    else:
        assert found["brier"] != pytest.approx(found["brier_calibrated"])


def _calibration_error(probs, truth, n_bins=15):
    """|confidence - accuracy| of each of 15 bins of equal width, weighted by how many are in it."""
    confidence, right = probs.max(axis=1), probs.argmax(axis=1) == truth
    total = 0.0
    for low in np.arange(n_bins) / n_bins:
        inside = (confidence > low) & (confidence <= low + 1 / n_bins)
        if inside.any():
            total += inside.sum() * abs(confidence[inside].mean() - right[inside].mean())
    return total / len(truth)
