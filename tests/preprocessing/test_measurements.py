"""Measurements of simulated recordings whose beats and intervals are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import Recording, simulate
from ecgquorum.errors import EcgQuorumError
from ecgquorum.preprocessing.beats import find_beats
from ecgquorum.preprocessing.measurements import Measurements, _measure_rhythm, measure_recording
from ecgquorum.recordings import STANDARD_LEADS

LEADS = {"one lead": ("ECG",), "12 leads": STANDARD_LEADS}


@pytest.mark.parametrize("leads", LEADS)
@pytest.mark.parametrize("label", ["N", "AF", "I-AVB", "RBBB", "LBBB", "STE", "PAC"])
def test_beats_are_found_where_they_are(label, leads):
    made = simulate(label, seed=5, leads=LEADS[leads], seconds=30)
    found = find_beats(made.recording)
    distance = np.abs(found[:, None] - made.beat_times_s)
    inside = (made.beat_times_s > 0.3) & (made.beat_times_s < 29.7)
    assert (distance.min(axis=0)[inside] < 0.12).all() and (distance.min(axis=1) < 0.12).mean() > 0.97


def test_pieces_of_a_long_recording_agree_with_the_whole(monkeypatch):
    recording = simulate("AF", seed=2, leads=("ECG",), seconds=120).recording
    whole = find_beats(recording)
    monkeypatch.setattr("ecgquorum.preprocessing.beats._PIECE_S", 25.0)
    np.testing.assert_allclose(find_beats(recording), whole, atol=0.02)


@given(st.floats(0.3, 2.0), st.integers(4, 40))
def test_a_steady_rhythm_has_its_rate_and_no_irregularity(rr_s, n_beats):
    found = _measure_rhythm(np.arange(n_beats) * rr_s)
    assert found.heart_rate_bpm == pytest.approx(60 / rr_s, abs=0.06) and found.rr_irregularity == 0.0
    assert found.n_beats == n_beats


def test_irregularity_is_that_of_the_definition():
    rr_s = np.array([0.8, 1.0, 0.8, 1.0, 0.8])
    found = _measure_rhythm(np.concatenate([[0.0], np.cumsum(rr_s)]))
    assert found.rr_irregularity == pytest.approx(0.2 / rr_s.mean(), abs=1e-3)


def test_irregularity_tells_fibrillation_from_sinus_rhythm():
    found = {
        label: [measure_recording(simulate(label, seed=s, leads=("ECG",)).recording).rr_irregularity for s in range(8)]
        for label in "NA"
    }
    assert max(found["N"]) < min(found["A"])


@pytest.mark.parametrize("signal", [np.zeros((1, 3000)), np.full((1, 3000), np.nan), np.ones((2, 40))])
def test_a_recording_without_beats_is_not_measured(signal):
    found = measure_recording(Recording("x", signal, 300.0, ("I", "II")[: len(signal)]))
    assert found == Measurements(n_beats=0) and found.line() == ""


BOUNDS = {  # largest bias and spread, in ms, over 8 recordings of 10 s; docs/reference/measurements.md has those of 25
    ("Normal", "pr_ms"): (20, 10),
    ("Normal", "qrs_ms"): (40, 20),
    ("Normal", "qt_ms"): (10, 12),
    ("RBBB", "qrs_ms"): (15, 10),
    ("RBBB", "qt_ms"): (10, 12),
}


@pytest.mark.parametrize("label", ["Normal", "RBBB"])
def test_intervals_are_those_of_the_simulation(label):
    pytest.importorskip("neurokit2")
    errors = {name: [] for kind, name in BOUNDS if kind == label}
    for seed in range(8):
        made = simulate(label, seed=seed, leads=("I", "V5"), seconds=10, rate_hz=500)
        found = measure_recording(made.recording, made.recording)
        for name, values in errors.items():
            values += [getattr(found, name) - made.intervals_ms[name]] if getattr(found, name) is not None else []
        if found.qt_ms is not None:
            rr_s = 60 / found.heart_rate_bpm
            assert found.qtc_bazett_ms == pytest.approx(found.qt_ms / rr_s**0.5, abs=0.1)
            assert found.qtc_fridericia_ms == pytest.approx(found.qt_ms / rr_s ** (1 / 3), abs=0.1)
    for name, values in errors.items():
        bias, spread = BOUNDS[label, name]
        assert len(values) >= 6 and abs(np.mean(values)) < bias and np.std(values) < spread, (name, values)


def test_intervals_without_the_package_are_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr("ecgquorum.preprocessing.measurements.find_spec", lambda name: None)
    recording = simulate("N", seed=1, leads=("ECG",), seconds=6).recording
    assert measure_recording(recording).heart_rate_bpm
    with pytest.raises(EcgQuorumError, match=r"ecgquorum\[measure\]"):
        measure_recording(recording, recording)


def test_a_line_names_what_was_measured():
    assert Measurements(72.4, 0.031, 12, pr_ms=160.2).line() == "72 /min, RR irregularity 0.03, PR 160 ms"


def test_the_truth_of_a_narrow_beat():
    made = simulate("I-AVB", seed=3)
    assert 220 <= made.intervals_ms["pr_ms"] <= 322 and 90 <= made.intervals_ms["qrs_ms"] <= 97
    assert "pr_ms" not in simulate("AF", seed=3).intervals_ms
