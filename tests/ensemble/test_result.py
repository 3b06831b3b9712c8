"""`Result` and its views."""

import json

import numpy as np
import pytest

from ecgquorum import Recording, predict_files, read, read_recordings, simulate
from ecgquorum.ensemble.predict_files import predict_outcomes
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.ensemble.result import CSV_COLUMNS, Result, failed_result
from ecgquorum.preprocessing import ReadOptions, Windowing
from ecgquorum.recordings import ReadFailure, write


@pytest.fixture
def folder(tmp_path):
    """A sound recording, a long one, one with a flat lead, one in a wrong unit, and a file that is none."""
    sound = simulate("A", seed=3, leads=("ECG",), seconds=6).recording
    write(sound, tmp_path / "a-sound.npz")
    write(simulate("N", seed=3, leads=("ECG",), seconds=14).recording, tmp_path / "b-long.csv")
    write(Recording("off", np.full((1, 3000), 0.1), 500.0, ("ECG",)), tmp_path / "c-off.npz")
    write(Recording("units", sound.signal * 1000, sound.rate_hz, ("ECG",)), tmp_path / "d-units.csv")
    (tmp_path / "e-junk.edf").write_bytes(b"junk" * 100)
    return tmp_path


def test_results_hold_windows_quality_and_notices(tiny_ensemble, folder):
    sound, long, off, units, junk = predict_files(tiny_ensemble, [folder], sandbox=False)
    assert (sound.decision, sound.notices, len(sound.windows)) == ("", (), 1)
    assert len(long.windows) == 3 and long.notices == ("mean of 3 windows of 6 s",)
    assert [window.start_s for window in long.windows] == [0.0, 4.0, 8.0]
    one = tiny_ensemble.predict(read(folder / "b-long.csv").signal[:, 1200:3000], rate_hz=300.0)  # from 4 to 10 s
    assert (long.windows[1].label, long.windows[1].probability, long.windows[1].risk) == (
        one.labels[0],
        pytest.approx(one.probs[0].max(), abs=1e-3),
        pytest.approx(one.risk[0], abs=1e-3),
    )
    assert off.decision == "unreadable" and off.reason.startswith("lead off on ECG") and off.label
    assert units.decision == "deferred" and "uV where it says mV" in units.notices[0]
    assert isinstance(junk, ReadFailure) and junk.source.endswith("e-junk.edf") and len(junk.sha256) == 64
    assert len(sound.sha256) == 64 and sound.source == str(folder / "a-sound.npz")


def test_probabilities_are_the_calibrated_ones(tiny_ensemble, folder, monkeypatch):
    monkeypatch.setattr(tiny_ensemble, "temperature", 3.0)
    one, *_ = predict_files(tiny_ensemble, [folder], sandbox=False)
    prediction = tiny_ensemble.predict(folder / "a-sound.npz")
    assert list(one.probabilities.values()) == pytest.approx(prediction.probs[0], abs=TOLERANCE)
    assert list(one.raw_probabilities.values()) == pytest.approx(prediction.raw_probs[0], abs=TOLERANCE)
    assert one.probability == max(one.probabilities.values()) == one.probabilities[one.label]
    assert one.risk == pytest.approx(1 - one.probability, abs=1e-4)
    assert len(one.votes) == len(one.raw_member_probabilities) == len(tiny_ensemble.members)


def test_json_is_an_exact_inverse(tiny_ensemble, folder):
    results = list(predict_files(tiny_ensemble, [folder], sandbox=False))
    results[-1] = failed_result(results[-1], "f" * 64)
    for result in results:
        text = json.dumps(result.to_json(), allow_nan=False)
        assert Result.from_json(json.loads(text)) == result
        assert Result.from_json(result.to_json()).to_json() == result.to_json()
        assert tuple(result.to_csv_row()) == CSV_COLUMNS


def test_a_failure_is_an_unreadable_result_without_a_label():
    result = failed_result(ReadFailure("/in/x.edf", "/in/x.edf: reader process crashed (signal 11); file skipped"))
    assert (result.id, result.label, result.decision, result.probability) == ("x", "", "unreadable", None)
    assert str(result.quality.severity) == "unreadable"
    assert result.quality.reasons == ("not read: reader process crashed (signal 11); file skipped",)


def test_text_that_a_spreadsheet_would_compute_is_quoted():
    row = Result("=1+1", "@x", uncertainty=-0.25).to_csv_row()
    assert (row["id"], row["source"], row["uncertainty"]) == ("'=1+1", "'@x", -0.25)


def test_one_recording_that_the_model_cannot_classify_does_not_affect_the_others(tiny_ensemble, folder, monkeypatch):
    outcomes = list(read_recordings([folder], ReadOptions(tiny_ensemble.input), sandbox=False))
    outcomes[0].signal[:] = np.inf
    used = []
    predict = tiny_ensemble.predict_windows
    monkeypatch.setattr(tiny_ensemble, "predict_windows", lambda *given: used.append(given[2]) or predict(*given))
    windowing = Windowing(tiny_ensemble.input.window_s / 2)
    prediction, answers = predict_outcomes(tiny_ensemble, outcomes, windowing)
    assert set(used) == {windowing}, "the recording that fails is looked for in the same windows"
    assert isinstance(answers[0], ReadFailure) and "no finite probability" in answers[0].reason
    assert [one.id for one in answers[1:4]] == list(prediction.ids) == ["b-long", "c-off", "d-units"]


def test_a_lead_that_does_not_exist_is_a_failure(tiny_ensemble, folder):
    (found,) = predict_files(tiny_ensemble, [folder / "a-sound.npz"], ReadOptions(lead="V9"), sandbox=False)
    assert isinstance(found, ReadFailure) and "expected lead V9, found only ECG" in found.reason
