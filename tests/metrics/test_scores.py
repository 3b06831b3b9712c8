"""Uncertainty scores: closed forms, bounds, and independence of the order of members and classes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import Prediction
from ecgquorum.errors import EcgQuorumError
from ecgquorum.metrics import SCORES, scores
from ecgquorum.metrics.calibration import MIN_PROBABILITY


@st.composite
def member_probs(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(2, 9)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return rng.dirichlet(np.full(shape[2], draw(st.sampled_from([0.3, 1.0, 10.0]))), size=shape[:2])


@given(member_probs())
def test_scores_stay_in_their_bounds(probs):
    _, n_members, n_classes = probs.shape
    highest = {
        "confidence": 1 - 1 / n_classes,
        "entropy": math.log(n_classes),
        "mutual_information": math.log(min(n_members, n_classes)),
        "pairwise_kl": -math.log(MIN_PROBABILITY),
        "variation_ratio": 1 - 1 / min(n_members, n_classes),
    }
    assert highest.keys() == SCORES.keys()
    for name, score in SCORES.items():
        found = score(probs)
        assert found.shape == (len(probs),)
        assert (found >= 0).all() and (found <= highest[name] + 1e-9).all(), name


@given(member_probs(), st.randoms())
def test_the_order_of_members_and_classes_does_not_matter(probs, random):
    members, classes = list(range(probs.shape[1])), list(range(probs.shape[2]))
    random.shuffle(members)
    random.shuffle(classes)
    for score in SCORES.values():
        np.testing.assert_allclose(score(probs[:, members][..., classes]), score(probs), atol=1e-12)


@given(member_probs())
def test_members_that_agree_have_no_disagreement(probs):
    same = np.repeat(probs[:, :1], 3, axis=1)
    for name, score in SCORES.items():
        expected = 0.0 if name in scores.DISAGREEMENT_SCORES else score(probs[:, :1])
        np.testing.assert_allclose(score(same), expected, atol=1e-12)


@given(member_probs())
def test_mutual_information_is_the_mean_divergence_from_the_mean(probs):
    mean = probs.mean(axis=1, keepdims=True)
    terms = np.where(probs > 0, probs * np.log(np.maximum(probs, 1e-300) / mean), 0)
    np.testing.assert_allclose(SCORES["mutual_information"](probs), terms.sum(axis=2).mean(axis=1), atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_one_hot_members_that_all_differ(n):
    probs = np.eye(4)[None, :n]
    expected = {
        "confidence": 1 - 1 / n,
        "entropy": math.log(n),
        "mutual_information": math.log(n),
        "pairwise_kl": -math.log(MIN_PROBABILITY),
        "variation_ratio": 1 - 1 / n,
    }
    for name, score in SCORES.items():
        assert score(probs)[0] == pytest.approx(expected[name]), name


def test_one_hot_members_that_agree_are_certain():
    for score in SCORES.values():
        assert score(np.eye(3)[[[1, 1, 1]]])[0] == 0


def test_two_members_by_hand():
    probs = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    mean_entropy = -(0.65 * math.log(0.65) + 0.35 * math.log(0.35))
    own = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1) + 0.4 * math.log(0.4) + 0.6 * math.log(0.6)) / 2
    forth = 0.9 * math.log(0.9 / 0.4) + 0.1 * math.log(0.1 / 0.6)
    back = 0.4 * math.log(0.4 / 0.9) + 0.6 * math.log(0.6 / 0.1)
    expected = {
        "confidence": 0.35,
        "entropy": mean_entropy,
        "mutual_information": mean_entropy - own,
        "pairwise_kl": (forth + back) / 2,
        "variation_ratio": 0.5,
    }
    found = Prediction(("r",), ("a", "b"), probs, (0.0, 1.0))
    for name in SCORES:
        assert found.score(name)[0] == pytest.approx(expected[name]), name
    assert found.entropy == found.score("entropy") and found.mutual_information == found.score("mutual_information")
    assert found.risk == found.score("confidence"), "without a temperature"


def test_the_majority_of_three_members():
    votes = np.eye(3)[[[0, 0, 1], [2, 2, 2], [0, 1, 2]]]
    np.testing.assert_allclose(SCORES["variation_ratio"](votes), [1 / 3, 0, 2 / 3])


def test_an_unknown_score_is_refused():
    found = Prediction(("r",), ("a", "b"), np.full((1, 2, 2), 0.5), (0.0, 1.0))
    with pytest.raises(EcgQuorumError, match="no uncertainty score 'doubt'; known: confidence, entropy"):
        found.score("doubt")
