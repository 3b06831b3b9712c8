"""Cohorts in memory behave as cohorts on disk."""

import pickle

import numpy as np
import pytest

from ecgquorum import Cohort, InputSpec
from ecgquorum.errors import CohortError


def arrays(n=20):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(2, int(length))).astype(np.float32) for length in rng.integers(80, 120, n)], np.arange(
        n
    ) % 3


def test_samples_labels_and_batches_are_those_of_the_arrays():
    x, y = arrays()
    cohort = Cohort.from_arrays(x, y, rate_hz=100.0, leads=("I", "II"), classes=("a", "b", "c"), parts="test")
    assert len(cohort) == 20 and cohort.part("test").tolist() == list(range(20)) and len(cohort.part("train")) == 0
    np.testing.assert_array_equal(cohort.signal(3), x[3])
    batch = cohort.batch([3, 4], InputSpec(("I", "II"), 100.0, scaling="none", window_s=1.5))
    assert batch.signal.shape == (2, 2, 150) and batch.label.tolist() == [0, 1]
    assert batch.valid.sum(dim=2).flatten().tolist() == [x[3].shape[1], x[4].shape[1]]
    np.testing.assert_array_equal(batch.signal[0].numpy()[:, batch.valid[0, 0]], x[3])
    assert cohort.recording(3).labels == ("a",)
    cohort.verify()


def test_the_split_is_seeded_and_names_of_classes_are_found():
    x, y = arrays(100)
    names = np.array(["x", "y", "z"])[y]
    cohort, again = (Cohort.from_arrays(x, names, rate_hz=100.0, leads=("I", "II"), seed=3) for _ in range(2))
    assert cohort.classes == ("x", "y", "z") and cohort.labels.tolist() == y.tolist()
    assert [len(cohort.part(part)) for part in ("train", "tune", "test")] == [80, 10, 10]
    assert cohort.data_hash == again.data_hash
    assert cohort.data_hash != Cohort.from_arrays(x, names, rate_hz=100.0, leads=("I", "II"), seed=4).data_hash


def test_it_can_be_sent_to_another_process():
    x, y = arrays()
    cohort = Cohort.from_arrays(x, y, rate_hz=100.0, leads=("I", "II"))
    assert pickle.loads(pickle.dumps(cohort)).data_hash == cohort.data_hash


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"y": np.arange(19)}, "one class for each of 20 recordings"),
        ({"y": np.arange(20), "classes": ("a", "b")}, "classes from 0 to 1, found 0 to 19"),
        ({"leads": ("I",)}, "recording 0: expected finite samples of 1 leads"),
        ({"x": [np.full((2, 90), np.nan)] * 20}, "recording 0: expected finite"),
        ({"parts": ["train"] * 19}, "parts: expected train, tune, test"),
        ({"parts": "validation"}, "parts: expected train, tune, test"),
        ({"x": [], "y": []}, "0 recordings"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, reason):
    x, y = arrays()
    with pytest.raises(CohortError, match=reason):
        Cohort.from_arrays(**({"x": x, "y": y, "rate_hz": 100.0, "leads": ("I", "II")} | change))
