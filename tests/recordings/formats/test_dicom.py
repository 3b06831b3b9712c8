import numpy as np
import pydicom
import pytest

from ecgquorum import Recording, read, simulate
from ecgquorum.recordings import STANDARD_LEADS

from ...contracts.formats import write_dicom


@pytest.fixture
def recording():
    made = simulate("N", seed=1, seconds=2.0, rate_hz=250.0).recording
    return Recording("made", np.round(made.signal, 3), 250.0, STANDARD_LEADS)


def with_padding(path, padding, change=None):
    """Set the padding value of the rhythm group, and change its samples (time, channel)."""
    data = pydicom.dcmread(path)
    group = data.WaveformSequence[1]
    stored = np.frombuffer(group.WaveformData, dtype="<i2").reshape(-1, 12).copy()
    if change is not None:
        change(stored)
    group.WaveformData = stored.tobytes()
    group.add_new(0x5400100A, "OW", np.int16(padding).tobytes())
    data.save_as(path)
    return stored


@pytest.mark.parametrize("padding", [0, 1, -57])
def test_a_padding_value_that_samples_take_does_not_remove_them(recording, tmp_path, padding):
    path = write_dicom(recording, tmp_path)
    stored = with_padding(path, padding)
    assert (stored == padding).any()
    np.testing.assert_allclose(read(path).signal, recording.signal, atol=2e-4)


@pytest.mark.parametrize("padding", [-32768, 32767, 20000])
def test_padding_far_from_all_samples_is_missing(recording, tmp_path, padding):
    path = write_dicom(recording, tmp_path)
    with_padding(path, padding, lambda stored: stored.__setitem__((slice(100, 120), 3), padding))
    found = read(path).signal
    assert np.argwhere(np.isnan(found)).tolist() == [[3, i] for i in range(100, 120)]


def test_a_channel_of_padding_only_is_missing(recording, tmp_path):
    path = write_dicom(recording, tmp_path)
    with_padding(path, 0, lambda stored: stored.__setitem__((slice(None), 5), 0))
    assert np.isnan(read(path).signal).all(axis=1).tolist() == [lead == "aVF" for lead in STANDARD_LEADS]


def test_an_eeg_is_not_read_as_an_ecg(recording, tmp_path):
    path = write_dicom(recording, tmp_path)
    data = pydicom.dcmread(path)
    for number, channel in enumerate(data.WaveformSequence[1].ChannelDefinitionSequence):
        channel.ChannelSourceSequence[0].CodeMeaning = "ECG" if number == 4 else f"EEG C{number}"
    data.save_as(path)
    found = read(path)
    assert found.leads == ("ECG",)
    np.testing.assert_allclose(found.signal[0], recording.signal[4], atol=2e-4)
