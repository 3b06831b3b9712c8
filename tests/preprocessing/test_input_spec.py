import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import Recording
from ecgquorum.errors import FittingError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.preprocessing.input_spec import Windowing, pad_or_cut, resample, select_leads, window_starts
from ecgquorum.recordings import STANDARD_LEADS


def recording(signal, rate_hz=300.0, leads=("ECG",)):
    return Recording("r", np.asarray(signal, dtype=np.float32), rate_hz, leads, source="r.hea")


def test_microvolts_are_a_thousand_times_millivolts():
    spec = InputSpec(("ECG",), 300.0, "microvolt", 60.0)
    np.testing.assert_array_equal(spec.fit(recording([[0.5, -1.0, 0.0]])), [[500, -1000, 0]])


def test_unit_scaling_is_per_lead_and_leaves_a_dead_lead_at_zero():
    spec = InputSpec(("I", "II"), 300.0, "unit", 60.0)
    np.testing.assert_array_equal(
        spec.fit(recording([[1, -2, 0.5], [0, 0, 0]], leads=("I", "II"))), [[0.5, -1, 0.25], [0, 0, 0]]
    )


def test_leads_are_put_in_the_models_order():
    signal = np.arange(12)[:, None] * np.ones((12, 10))
    shuffled = recording(signal[::-1], leads=STANDARD_LEADS[::-1])
    spec = InputSpec(STANDARD_LEADS, 300.0, "microvolt", 60.0)
    np.testing.assert_array_equal(spec.fit(shuffled)[:, 0], 1000 * np.arange(12))


def test_leads_that_do_not_fit_are_refused_with_advice():
    twelve = recording(np.ones((12, 10)), leads=STANDARD_LEADS)
    one = InputSpec(("ECG",), 300.0, "microvolt", 60.0)
    with pytest.raises(FittingError, match=r"r.hea: expected 1 lead, found 12; choose one with --lead II"):
        one.fit(twelve)
    assert one.fit(twelve, lead="avr").shape == (1, 10)
    lone = Recording("r", np.ones((1, 10)), 300.0, ("ECG",))
    assert one.fit(lone, lead="II").shape == (1, 10), "a lead without a name is the only one there is to take"
    with pytest.raises(FittingError, match="expected lead V9, found only ECG"):
        one.fit(lone, lead="V9")
    with pytest.raises(FittingError, match="expected lead V9, found only I, II"):
        one.fit(twelve, lead="V9")
    with pytest.raises(FittingError, match="expected lead V1, V2"):
        InputSpec(("I", "V1", "V2"), 300.0, "unit", 9.0).fit(recording(np.ones((1, 9)), leads=("I",)))
    with pytest.raises(FittingError, match="12 leads"):
        InputSpec(STANDARD_LEADS, 300.0, "unit", 9.0).fit(twelve, lead="II")


def test_a_chest_lead_can_be_chosen_by_its_iec_name():
    signal = np.arange(12)[:, None] * np.ones((12, 10))
    twelve = recording(signal, leads=STANDARD_LEADS)
    assert select_leads(twelve, ("ECG",), "C1").leads == select_leads(twelve, ("ECG",), "c1").leads == ("V1",)
    named = recording(signal[:2], leads=("C1", "V1"))
    assert select_leads(named, ("ECG",), "C1").leads == ("C1",), "a lead of that very name comes first"
    with pytest.raises(FittingError, match="expected lead C7, found only I, II"):
        select_leads(twelve, ("ECG",), "C7")


@pytest.mark.parametrize(("from_hz", "to_hz"), [(500, 300), (360, 300), (128, 100), (100, 300), (257, 300)])
def test_resampling_keeps_a_sine(from_hz, to_hz):
    def sine(rate):
        return np.sin(2 * np.pi * 7 * np.arange(10 * rate) / rate, dtype=np.float32)[None]

    found, expected = resample(sine(from_hz), from_hz, to_hz), sine(to_hz)
    assert abs(found.shape[1] - expected.shape[1]) <= 1
    inner = slice(to_hz, 9 * to_hz)
    np.testing.assert_allclose(found[:, inner], expected[:, inner], atol=2e-3)


def test_gaps_are_bridged_and_an_empty_lead_is_refused():
    signal = np.array([[np.nan, 1, np.nan, 3, 4, 5, 6, np.nan]])
    spec = InputSpec(("ECG",), 300.0, "microvolt", 60.0)
    np.testing.assert_allclose(spec.fit(recording(signal)), [[0, 1000, 2000, 3000, 4000, 5000, 6000, 0]])
    with pytest.raises(FittingError, match="lead ECG, found 75% of them missing"):
        spec.fit(recording([[np.nan, np.nan, np.nan, 1.0]]))


@given(n_samples=st.integers(1, 50), n_window=st.integers(1, 50))
def test_a_window_pads_on_both_sides_or_cuts_the_end(n_samples, n_window):
    signal = np.arange(1, n_samples + 1, dtype=np.float32)[None]
    padded, place = pad_or_cut(signal, n_window)
    assert padded.shape == (1, n_window)
    np.testing.assert_array_equal(padded[:, place], signal[:, :n_window])
    outside = np.ones(n_window, dtype=bool)
    outside[place] = False
    assert not padded[:, outside].any()
    if n_samples < n_window:
        assert place.start == (n_window - n_samples) // 2


@given(n_samples=st.integers(1, 400), n_window=st.integers(1, 60))
def test_the_fewest_windows_cover_every_sample(n_samples, n_window):
    starts = window_starts(n_samples, n_window)
    found = [range(start, min(start + n_window, n_samples)) for start in starts]
    assert set().union(*found) == set(range(n_samples))
    assert len(found) == -(-n_samples // n_window)
    assert all(len(window) == min(n_samples, n_window) for window in found)


@given(n_samples=st.integers(1, 40_000), window_s=st.floats(2, 60), share=st.none() | st.floats(0.5, 1))
def test_windows_of_any_length_and_stride_cover_every_sample(n_samples, window_s, share):
    spec = InputSpec(("ECG",), 10.0)
    windowing = Windowing(window_s, None if share is None else share * window_s)
    windowing.check(spec)
    starts, n_window = windowing.starts(n_samples, spec), windowing.n_window(spec)
    assert starts[0] == 0 and starts[-1] == max(0, n_samples - n_window)
    assert all(0 < step <= n_window for step in np.diff(starts))


@pytest.mark.parametrize("windowing", [Windowing(61), Windowing(1), Windowing(10, 11), Windowing(10, 0.1)])
def test_windows_that_do_not_fit_the_model_or_leave_parts_out_are_refused(windowing):
    with pytest.raises(FittingError, match="expected"):
        windowing.check(InputSpec(("ECG",), 300.0))


@pytest.mark.parametrize("there", [("I", "II"), ("I", "III"), ("III", "II"), ("V1", "II", "I")])
def test_limb_leads_are_derived_from_any_two(there):
    one, two, three = np.random.default_rng(0).normal(size=(3, 50)).astype(np.float32)
    measured = {"I": one, "II": two, "III": two - one, "V1": three}
    signal = np.stack([measured[name] for name in there])
    limbs = STANDARD_LEADS[:6]
    found = select_leads(recording(signal, leads=there), limbs)
    expected = [one, two, two - one, -(one + two) / 2, one - two / 2, two - one / 2]
    np.testing.assert_allclose(found.signal, expected, atol=1e-5)
    with pytest.raises(FittingError, match="expected lead V2, V3, V4, V5, V6, found only"):
        select_leads(recording(signal, leads=there), (*limbs, "V2", "V3", "V4", "V5", "V6"))


def test_a_mostly_missing_lead_is_derived_or_zero():
    signal = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32)
    signal[2] = signal[1] - signal[0]
    spec = InputSpec(("I", "II", "III", "V1"), 300.0, "microvolt", 60.0)
    for lost in range(4):
        damaged = signal.copy()
        damaged[lost, :30] = np.nan
        expected = signal.copy()
        if lost == 3:
            expected[3] = 0
        np.testing.assert_allclose(spec.fit(recording(damaged, leads=spec.leads)), expected * 1000, atol=1e-2)
    damaged = np.full_like(signal, np.nan)
    with pytest.raises(FittingError, match="lead I, found 100% of them missing"):
        spec.fit(recording(damaged, leads=spec.leads))


@pytest.mark.parametrize(("from_hz", "to_hz"), [(250, 300), (500, 300), (1000, 300), (257, 300), (128, 500)])
def test_a_long_recording_is_resampled_in_pieces_as_at_once(from_hz, to_hz, monkeypatch):
    signal = np.cumsum(np.random.default_rng(0).normal(size=(2, 20_001)), axis=1).astype(np.float32)
    at_once = resample(signal, from_hz, to_hz)
    monkeypatch.setattr("ecgquorum.preprocessing.input_spec._PIECE", 3_000)
    in_pieces = resample(signal, from_hz, to_hz)
    assert in_pieces.shape == at_once.shape
    inside = slice(100, -100)  # at the ends, both extend the signal along a line, but not along the same one
    np.testing.assert_allclose(in_pieces[:, inside], at_once[:, inside], atol=1e-5 * np.abs(signal).max())
