from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.cohorts.split import permutation_test_ids, split_parts


@given(
    labels=st.lists(st.sampled_from("NAO~"), min_size=1, max_size=300),
    tune=st.floats(0.05, 0.3),
    test=st.floats(0.05, 0.3),
    seed=st.integers(0, 5),
)
def test_parts_have_the_right_sizes_and_are_stratified(labels, tune, test, seed):
    parts = split_parts(labels, [""] * len(labels), seed=seed, tune=tune, test=test)
    assert parts == split_parts(labels, [""] * len(labels), seed=seed, tune=tune, test=test)
    assert None not in parts
    for name, share in (("train", 1 - tune - test), ("tune", tune), ("test", test)):
        chosen = [label for label, part in zip(labels, parts, strict=True) if part == name]
        assert abs(len(chosen) - share * len(labels)) <= 4
        for label, count in Counter(labels).items():
            assert abs(chosen.count(label) - share * count) <= 3
            assert name != "train" or label in chosen


@given(
    patients=st.lists(st.integers(0, 40), min_size=20, max_size=200),
    seed=st.integers(0, 5),
)
def test_a_patient_is_in_one_part_only(patients, seed):
    names = [f"p{p}" for p in patients]
    parts = split_parts(["N"] * len(names), names, seed=seed)
    assert len({(name, part) for name, part in zip(names, parts, strict=True)}) == len(set(names))


def test_another_seed_gives_another_split():
    labels = ["N"] * 100
    assert split_parts(labels, [""] * 100, seed=0) != split_parts(labels, [""] * 100, seed=1)


def test_patients_of_a_fixed_test_part_are_not_in_other_parts():
    labels = ["N", "A"] * 20
    patients = [f"p{i // 4}" for i in range(40)]
    fixed = [i in (0, 5) for i in range(40)]
    parts = split_parts(labels, patients, seed=0, fixed_test=fixed)
    assert [i for i, part in enumerate(parts) if part == "test"] == [0, 5]
    assert [i for i, part in enumerate(parts) if part is None] == [1, 2, 3, 4, 6, 7]


def test_the_authors_permutation_has_its_last_tenth_as_test_part():
    ids = [f"A{i:05d}" for i in range(8528)]
    permutation = np.random.default_rng(0).permutation(8528)
    chosen = permutation_test_ids(permutation, ids)
    assert len(chosen) == 853
    assert chosen[0] == ids[permutation[7675]]
    with pytest.raises(ValueError, match="permutation of 10"):
        permutation_test_ids(permutation, ids[:10])
