"""Cohorts as models of other classes, leads and rates see them."""

import pickle

import numpy as np
import pytest

import ecgquorum as eq
from ecgquorum import Cohort, LabelMap, MappedCohort, load_label_map
from ecgquorum.cohorts import hold_out_class
from ecgquorum.errors import CohortError, FittingError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recordings import STANDARD_LEADS

MODEL = InputSpec(("ECG",), 300.0)
CLASSES = ("N", "A", "O", "~")
LABELS = {"Normal": "N", "AF": "A", "PVC": "O"}


@pytest.fixture(scope="module")
def twelve_leads():
    """Recordings of another hospital: 12 leads at 100 Hz, other classes."""
    labels = ["Normal", "AF", "PVC", "LBBB"] * 5
    x = [
        eq.simulate(label, seed=i, seconds=4 + i % 3, rate_hz=100.0, leads=STANDARD_LEADS).recording.signal
        for i, label in enumerate(labels)
    ]
    return Cohort.from_arrays(x, labels, rate_hz=100.0, leads=STANDARD_LEADS, parts="test")


def test_recordings_have_the_classes_leads_and_rate_of_the_model(twelve_leads):
    mapped = MappedCohort(twelve_leads, CLASSES, MODEL, LabelMap(LABELS, "II"))
    assert (mapped.classes, mapped.leads, mapped.rate_hz) == (CLASSES, ("ECG",), 300.0)
    assert [row.label for row in mapped.rows] == ["N", "A", "O"] * 5
    assert mapped.labels.tolist() == [0, 1, 2] * 5
    signal, base = mapped.signal(1), twelve_leads.signal(1)
    assert signal.shape == (1, 3 * base.shape[1]) and mapped.rows[1].n_samples == signal.shape[1]
    np.testing.assert_allclose(signal[0, 60:-60:3], base[1, 20:-20], atol=0.02)
    batch = mapped.batch(mapped.part("test"), MODEL)
    assert batch.signal.shape == (15, 1, MODEL.n_window)


def test_what_was_mapped_and_left_out_is_described(twelve_leads):
    mapped = MappedCohort(twelve_leads, CLASSES, MODEL, LabelMap(LABELS, "II"))
    assert mapped.describe("test") == [
        "Normal → N: 5 recordings",
        "AF → A: 5 recordings",
        "PVC → O: 5 recordings",
        "left out: LBBB (5)",
        "no recordings of the model's classes ~",
        f"{', '.join(STANDARD_LEADS)} at 100 Hz → ECG (lead II) at 300 Hz",
    ]
    assert mapped.count_unseen("test") == {"LBBB": 5} and mapped.count_unseen("tune") == {}
    assert mapped.unseen_signal("LBBB", "test", 4).shape[0] == 1


def test_another_lead_is_another_data_hash_and_processes_get_the_same(twelve_leads):
    one, two = (MappedCohort(twelve_leads, CLASSES, MODEL, LabelMap(LABELS, lead)) for lead in ("I", "II"))
    assert one.data_hash != two.data_hash
    again = pickle.loads(pickle.dumps(two))
    assert again.data_hash == two.data_hash
    np.testing.assert_array_equal(again.signal(3), two.signal(3))


def test_a_class_that_is_held_out_is_unseen(tiny_cohort):
    kept = hold_out_class(tiny_cohort, "O")
    assert kept.classes == ("N", "A", "~") and "O" not in {row.label for row in kept.rows}
    assert kept.data_hash != tiny_cohort.data_hash
    assert hold_out_class(kept, "O") is kept and hold_out_class(tiny_cohort, None) is tiny_cohort
    n_unseen = sum(row.label == "O" and row.part == "train" for row in tiny_cohort.rows)
    assert kept.count_unseen("train") == {"O": n_unseen}
    first = next(i for i, row in enumerate(tiny_cohort.rows) if (row.label, row.part) == ("O", "train"))
    np.testing.assert_array_equal(kept.unseen_signal("O", "train", 0), tiny_cohort.signal(first))
    with pytest.raises(CohortError, match="hold_out: expected one of at least three classes, N, A, O, ~, found 'X'"):
        hold_out_class(tiny_cohort, "X")
    assert hold_out_class(tiny_cohort, "X", required=False) is tiny_cohort


def test_wrong_maps_are_refused_with_a_reason(twelve_leads, tmp_path):
    with pytest.raises(CohortError, match="the cohort has no class 'Afib'; it has: AF"):
        MappedCohort(twelve_leads, CLASSES, MODEL, LabelMap({"Afib": "A"}, "II"))
    with pytest.raises(CohortError, match="the model has no class 'AF'; it has: N, A, O, ~"):
        MappedCohort(twelve_leads, CLASSES, MODEL, LabelMap({"AF": "AF"}, "II"))
    with pytest.raises(FittingError, match="choose one with --lead"):
        MappedCohort(twelve_leads, CLASSES, MODEL, LabelMap(LABELS))
    path = tmp_path / "map.toml"
    for text, message in (
        ("labels = 3", "expected a table"),
        ("[labels]\nAF = 1", "expected a table"),
        ("[label]\nAF = 'A'", "unknown key label; known: labels, lead"),
        ("[labels", "expected TOML"),
        ("lead = 2\n[labels]\nAF = 'A'", "expected lead = "),
    ):
        path.write_text(text)
        with pytest.raises(CohortError, match=message):
            load_label_map(path)
    with pytest.raises(CohortError, match="cannot read the labels"):
        load_label_map(tmp_path / "absent.toml")
    path.write_text('lead = "II"\n[labels]\nAF = "A"\n"~" = "~"\n')
    assert load_label_map(path) == LabelMap({"AF": "A", "~": "~"}, "II")
