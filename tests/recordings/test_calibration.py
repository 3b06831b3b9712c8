"""Calibration pulses that devices record with the leads."""

import numpy as np
import pytest

from ecgquorum import Recording, simulate
from ecgquorum.recordings import STANDARD_LEADS
from ecgquorum.recordings.calibration import remove_calibration

RATE_HZ = 500.0


@pytest.fixture
def recording():
    return simulate("N", seed=1, seconds=11.0, rate_hz=RATE_HZ).recording


def with_pulse(recording, start, stop, flat=100, height=1.0):
    """A pulse as Philips records it, with flat stretches of this many samples around it."""
    signal = recording.signal.copy()
    signal[:, max(0, start - flat) : stop + flat] = 0.0
    signal[:, start:stop] = height
    return Recording("made", signal, RATE_HZ, recording.leads)


def test_a_pulse_at_the_end_is_cut_off_with_a_note(recording):
    found = remove_calibration(with_pulse(recording, 5350, 5450))
    np.testing.assert_array_equal(found.signal, recording.signal[:, :5250])
    assert found.notes == ("1 mV calibration pulse removed (10.50 to 11.00 s)",)


def test_a_pulse_at_the_start_is_cut_off(recording):
    found = remove_calibration(with_pulse(recording, 50, 150))
    np.testing.assert_array_equal(found.signal, recording.signal[:, 250:])


def test_a_pulse_in_the_middle_is_missing(recording):
    found = remove_calibration(with_pulse(recording, 2000, 2100))
    missing = np.isnan(found.signal).all(axis=0)
    assert np.flatnonzero(missing).tolist() == list(range(1900, 2200))
    np.testing.assert_array_equal(found.signal[:, ~missing], recording.signal[:, ~missing])


@pytest.mark.parametrize("height", [0.5, 2.0, -1.0])
def test_flat_stretches_of_other_heights_stay(recording, height):
    assert remove_calibration(with_pulse(recording, 5350, 5450, height=height)).notes == ()


def test_recordings_without_a_pulse_are_unchanged(recording):
    assert remove_calibration(recording) is recording
    short = with_pulse(recording, 5350, 5360)  # 20 ms
    assert remove_calibration(short) is short
    one = Recording("one", with_pulse(recording, 5350, 5450).signal[:1], RATE_HZ, ("I",))
    assert remove_calibration(one) is one  # one lead may well be at 1 mV
    constant = Recording("constant", np.ones((12, 5000)), RATE_HZ, STANDARD_LEADS)
    assert remove_calibration(constant) is constant
