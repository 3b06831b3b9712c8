"""Mixtures of natural and attacked recordings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.evaluation.conditions import Condition, find_mixtures
from ecgquorum.evaluation.mixed_conditions import (
    draw_assignments,
    mix_records,
    mixed_accuracy,
    mixed_augrc,
    mixed_deferral_curve,
)
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import augrc, bootstrap


def make_predictions(seed, n=40, accuracy=0.7):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    predicted = np.where(rng.random(n) < accuracy, labels, (labels + 1) % 3)
    probs = np.eye(3)[predicted][:, None].repeat(2, axis=1) * 0.8 + 0.2 / 3
    return LabelledPredictions(labels, probs, rng.random(n))


@given(st.integers(4, 300), st.integers(0, 5))
def test_the_shares_are_as_documented(n_records, seed):
    assigned = draw_assignments(n_records, seed, draws=3)
    for draw in assigned:
        counts = np.bincount(draw, minlength=4)
        np.testing.assert_allclose(counts, np.array([0.5, 0.25, 0.15, 0.1]) * n_records, atol=1.0)


def test_every_ensemble_gets_the_same_assignment():
    np.testing.assert_array_equal(draw_assignments(100, 0), draw_assignments(100, 0))
    assert (draw_assignments(100, 0) != draw_assignments(100, 1)).any()
    assert len({tuple(draw) for draw in draw_assignments(100, 0)}) == 50


def test_each_recording_of_a_mixture_has_its_assigned_strength():
    strengths = [make_predictions(seed) for seed in range(4)]
    strengths = [LabelledPredictions(strengths[0].labels, s.raw_member_probs, s.uncertainty) for s in strengths]
    assigned = np.arange(40) % 4
    (errors,) = mix_records([~one.correct for one in strengths], assigned[None])
    (uncertainty,) = mix_records([one.uncertainty for one in strengths], assigned[None])
    for place, strength in enumerate(assigned):
        assert errors[place] == (not strengths[strength].correct[place])
        assert uncertainty[place] == strengths[strength].uncertainty[place]


def test_a_mixture_of_equal_conditions_equals_them():
    natural = make_predictions(3)
    assigned = draw_assignments(40, 0)
    plain = bootstrap(lambda w: augrc(~natural.correct, natural.uncertainty, w), 40)
    wrong, uncertainty = [~natural.correct] * 4, [natural.uncertainty] * 4
    area = mixed_augrc(wrong, uncertainty, assigned)
    assert (area.value, area.low, area.high) == pytest.approx((plain.value, plain.low, plain.high))
    assert mixed_accuracy(wrong, assigned).value == pytest.approx(natural.correct.mean())
    kept, errors = mixed_deferral_curve(wrong, uncertainty, assigned)
    assert errors[-1] == pytest.approx(1 - natural.correct.mean())
    assert np.trapezoid(errors, kept) == pytest.approx(area.value)


def test_the_area_of_a_mixture_is_the_mean_over_its_draws():
    rng = np.random.default_rng(4)
    wrong = [rng.random(60) < share for share in (0.2, 0.3, 0.4, 0.5)]
    uncertainty = [rng.integers(8, size=60) / 8 for _ in wrong]  # with ties
    assigned = draw_assignments(60, 0)
    drawn = list(zip(mix_records(wrong, assigned), mix_records(uncertainty, assigned), strict=True))
    plain = bootstrap(lambda w: np.mean([augrc(e, u, w) for e, u in drawn], axis=0), 60)
    area = mixed_augrc(wrong, uncertainty, assigned)
    assert (area.value, area.low, area.high) == pytest.approx((plain.value, plain.low, plain.high), rel=1e-5)


def test_attacks_on_some_recordings_or_of_few_strengths_are_not_mixed():
    conditions = [Condition()]
    conditions += [Condition("pgd", "member 0", e) for e in (75.0, 10.0, 50.0, 100.0)]
    conditions += [Condition("sap", "member 0", e) for e in (10.0, 50.0)]
    conditions += [Condition("pgd", "ensemble", e, 20) for e in (10.0, 50.0, 75.0)]
    assert find_mixtures(conditions) == [("pgd", "member 0", (2, 3, 1))]
