"""Prediction sets: closed-form values, and those of the triage policy."""

import numpy as np

from ecgquorum.ensemble import Prediction
from ecgquorum.metrics.conformal import conformal_quantile, cumulative_probs, prediction_sets
from ecgquorum.triage.policies import Conformal


def test_the_cumulative_probability_of_a_class_is_that_of_all_likelier_ones_and_itself():
    np.testing.assert_allclose(cumulative_probs(np.array([[0.5, 0.2, 0.3]])), [[0.5, 1.0, 0.8]])


def test_a_set_ends_where_the_quantile_is_reached():
    probs = np.array([[0.5, 0.2, 0.3], [0.9, 0.05, 0.05]])
    np.testing.assert_array_equal(prediction_sets(probs, 0.8), [[True, False, True], [True, False, False]])
    np.testing.assert_array_equal(prediction_sets(probs, np.array([1.0, 0.1])), [[True] * 3, [True, False, False]])


def test_too_few_recordings_give_the_whole_set():
    assert conformal_quantile(np.array([[0.6, 0.4]] * 5), np.zeros(5, dtype=int), 0.1) == 1.0


def test_sets_are_those_of_the_triage_policy():
    """Up to classes between two scores, since the policy's quantile lies halfway between them."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=300)
    labels = np.array([rng.choice(4, p=row) for row in probs])
    prediction = Prediction(("",) * 300, tuple("abcd"), probs[:, None], (0.0, 1.0))
    policy = Conformal.fit(prediction, labels, 0.1, "confidence")
    ours = prediction_sets(probs, conformal_quantile(probs, labels, 0.1))
    theirs = policy.sets(prediction)
    assert (theirs | ~ours).all() and (theirs != ours).mean() < 0.01
