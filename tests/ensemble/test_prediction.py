import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ecgquorum import Prediction
from ecgquorum.ensemble import entropy


def prediction(member_probs, information_range=(0.0, 1.0)):
    member_probs = np.asarray(member_probs, dtype=float)
    return Prediction(
        tuple(f"r{i}" for i in range(len(member_probs))),
        tuple("NAO~BCDEF"[: member_probs.shape[2]]),
        member_probs,
        information_range,
    )


@st.composite
def member_probs(draw):
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(2, 9)))
    raw = draw(arrays(float, shape, elements=st.one_of(st.just(0.0), st.floats(1e-6, 1.0))))
    raw[..., 0] += 1e-3
    return raw / raw.sum(axis=2, keepdims=True)


@given(member_probs())
def test_mutual_information_stays_in_its_bounds(probs):
    found = prediction(probs).mutual_information
    _, n_members, n_classes = probs.shape
    assert (found >= 0).all()
    assert (found <= math.log(min(n_members, n_classes)) + 1e-9).all()


@given(member_probs())
def test_members_that_agree_have_no_mutual_information(probs):
    same = np.repeat(probs[:, :1], 4, axis=1)
    np.testing.assert_allclose(prediction(same).mutual_information, 0, atol=1e-12)


@given(member_probs())
def test_the_mean_is_a_probability_and_its_peak_the_label(probs):
    found = prediction(probs)
    np.testing.assert_allclose(found.probs.sum(axis=1), 1)
    assert [found.classes.index(label) for label in found.labels] == found.probs.argmax(axis=1).tolist()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_members_certain_of_different_classes_have_mutual_information_ln_k(n):
    found = prediction([np.eye(4)[:n]])
    np.testing.assert_allclose(found.mutual_information, math.log(n))
    np.testing.assert_allclose(found.entropy, math.log(n))


def test_values_by_hand():
    found = prediction([[[0.9, 0.1], [0.5, 0.5]]], information_range=(0.02, 0.52))
    h = -(0.7 * math.log(0.7) + 0.3 * math.log(0.3))
    expected = h - (-(0.9 * math.log(0.9) + 0.1 * math.log(0.1)) + math.log(2)) / 2
    np.testing.assert_allclose(found.mutual_information, expected)
    np.testing.assert_allclose(found.uncertainty, (expected - 0.02) / 0.5)
    assert found.labels == ("N",)


def test_entropy_is_zero_for_certainty_and_ln_c_for_a_uniform_distribution():
    np.testing.assert_allclose(entropy(np.array([[1.0, 0.0], [0.5, 0.5]])), [0.0, math.log(2)])


def test_results_are_plain_json_and_complete():
    (result,) = prediction([[[0.75, 0.25], [0.5, 0.5]]]).results()
    row = result.to_json()
    assert row["id"] == "r0"
    assert row["label"] == "N"
    assert row["probabilities"] == {"N": 0.625, "A": 0.375}
    assert row["raw_member_probabilities"] == [{"N": 0.75, "A": 0.25}, {"N": 0.5, "A": 0.5}]
    assert all(isinstance(row[key], float) for key in ("entropy", "mutual_information", "uncertainty"))
