import warnings

import numpy as np
import pytest
import torch

from ecgquorum import Recording, load_ensemble, predict_files, simulate
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.errors import FittingError, QualityWarning
from ecgquorum.recordings import STANDARD_LEADS, ReadFailure, write


@pytest.fixture
def recordings():
    return [simulate("NAO~"[i % 4], seed=i, seconds=5, leads=("ECG",)).recording for i in range(40)]


def test_forward_is_the_log_of_the_mean_probability(tiny_ensemble):
    x = torch.randn(5, 1, 1800) * 200
    expected = torch.stack([member(x).softmax(dim=1) for member in tiny_ensemble.members]).mean(dim=0).log()
    torch.testing.assert_close(tiny_ensemble(x), expected)


def test_predictions_do_not_depend_on_the_batch_or_the_mode(tiny_ensemble, recordings):
    together = tiny_ensemble.predict(recordings)
    alone = [tiny_ensemble.predict(recording).member_probs[0] for recording in recordings]
    np.testing.assert_allclose(together.member_probs, alone, atol=TOLERANCE)
    assert together.ids == tuple(r.id for r in recordings)
    tiny_ensemble.train()
    np.testing.assert_array_equal(tiny_ensemble.predict(recordings).member_probs, together.member_probs)
    assert tiny_ensemble.training


def test_any_rate_unit_and_lead_order_is_accepted(tiny_ensemble):
    fast = simulate("A", seed=1, seconds=5, rate_hz=1200, noise=0)
    slow = simulate("A", seed=1, seconds=5, rate_hz=300, noise=0)
    first, second = tiny_ensemble.predict(fast.recording, lead="II"), tiny_ensemble.predict(slow.recording, lead="ii")
    np.testing.assert_allclose(first.probs, second.probs, atol=0.02)
    turned = Recording("t", slow.recording.signal[::-1], 300.0, slow.recording.leads[::-1])
    np.testing.assert_allclose(tiny_ensemble.predict(turned, lead="II").probs, second.probs, atol=TOLERANCE)


def test_recordings_that_do_not_fit_are_refused(tiny_ensemble):
    with pytest.raises(FittingError, match="expected 1 lead, found 12; choose one with --lead II"):
        tiny_ensemble.predict(simulate("N", seed=0).recording)


def test_probabilities_that_are_not_finite_are_refused(tiny_ensemble):
    wild = Recording("wild", np.full((1, 1500), 3e38), 300.0, ("ECG",))
    with (
        pytest.raises(FittingError, match="wild: expected amplitudes of"),
        np.errstate(over="ignore"),
    ):
        tiny_ensemble.predict(wild)


def test_no_recordings_give_an_empty_prediction(tiny_ensemble):
    nothing = tiny_ensemble.predict([])
    assert len(nothing) == 0
    assert nothing.results() == []
    assert nothing.probs.shape == (0, 4)


def test_a_lead_set_to_zero_gives_a_notice(tmp_path):
    signal = np.array(simulate("Normal", seed=0, seconds=5).recording.signal)
    signal[7, : signal.shape[1] * 3 // 4] = np.nan
    path = write(Recording("r", signal, 300.0, STANDARD_LEADS), tmp_path / "r.npz")
    (answer,) = predict_files(load_ensemble("cpsc2018"), [path])
    assert answer.notices == ("mostly missing, set to zero: V2",) and str(answer.quality.severity) == "doubtful"


def test_files_are_classified_one_by_one_and_bad_ones_named(tiny_ensemble, write_record, tmp_path):
    folder = tmp_path / "in"
    write_record("a", folder=folder)
    write_record("b", folder=folder, leads=("I", "II"), units=("mV", "mV"))
    write_record("c", folder=folder, signal=np.sin(np.arange(9000) / 9)[None])
    (folder / "d.hea").write_text("junk")
    write_record("e", folder=folder, signal=np.sin(np.arange(3000) / 20)[None] * 1e20)
    answers = list(predict_files(tiny_ensemble, [folder]))
    by_name = {a.source[-5] if isinstance(a, ReadFailure) else a.id: a for a in answers}
    assert by_name["a"].notices == ("mean of 2 windows of 6 s",)
    assert by_name["c"].notices == ("mean of 5 windows of 6 s",)
    assert "choose one with --lead" in by_name["b"].reason
    assert "d.hea" in by_name["d"].reason
    assert by_name["a"].source.endswith("a.hea")
    assert "check its gain and units" in by_name["e"].reason  # and the others are answered all the same
    assert list(by_name) == ["a", "b", "c", "d", "e"]


def test_a_long_recording_gets_the_mean_of_its_windows(tiny_ensemble):
    n_window = tiny_ensemble.input.n_window
    signal = np.random.default_rng(0).normal(size=(1, 3 * n_window)).astype(np.float32)
    parts = [signal[:, i * n_window : (i + 1) * n_window] for i in range(3)]

    def probs(signal):
        return tiny_ensemble.predict(Recording("r", signal, 300.0, ("ECG",))).member_probs

    np.testing.assert_allclose(probs(signal), np.mean([probs(part) for part in parts], axis=0), atol=TOLERANCE)
    many = [Recording(f"r{i}", signal[:, : 400 * (i + 1)], 300.0, ("ECG",)) for i in range(13)]
    together = tiny_ensemble.predict(many)
    for row, one in zip(together.member_probs, many, strict=True):
        np.testing.assert_allclose(row, tiny_ensemble.predict(one).member_probs[0], atol=TOLERANCE)
    assert together.ids == tuple(f"r{i}" for i in range(13))


def test_microvolts_handed_over_as_millivolts_are_a_warning(tiny_ensemble):
    samples = simulate("N", seed=1, leads=("ECG",), seconds=6, rate_hz=300).recording.signal
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_ensemble.predict(samples, rate_hz=300)
    with pytest.warns(QualityWarning, match="implausible amplitude on ECG: .* as if its samples were in uV") as found:
        tiny_ensemble.predict(1000 * samples, rate_hz=300)
    assert found[0].filename == __file__, "it points to the line of the caller"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_ensemble.predict(1000 * samples, rate_hz=300, units="uV")


def test_every_finding_of_the_guard_is_a_warning():
    recording = simulate("Normal", seed=1, seconds=10, rate_hz=500).recording
    recording.signal[7] = 0.1
    with pytest.warns(QualityWarning, match="lead off on V2: a constant signal"):
        load_ensemble("cpsc2018").predict(recording)
