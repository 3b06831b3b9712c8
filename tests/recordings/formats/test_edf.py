"""EDF as devices write it."""

import warnings

import edfio
import numpy as np
import pytest

from ecgquorum import read
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import FileDefaults

ROW = np.sin(np.arange(2500) / 9)


@pytest.fixture
def write_edf(tmp_path):
    """Signals with these labels, in millivolts, their sizes 1, 2, 3, ..."""

    def write(*labels, unit="mV"):
        signals = [
            edfio.EdfSignal(i * ROW, 250, label=label, physical_dimension=unit, physical_range=(-9, 9))
            for i, label in enumerate(labels, start=1)
        ]
        edfio.Edf(signals).write(tmp_path / "a.edf")
        return tmp_path / "a.edf"

    return write


def patched(path, old, new):
    content = path.read_bytes()
    assert content.count(old) >= 1
    path.write_bytes(content.replace(old, new, 1))
    return path


@pytest.mark.parametrize("micro", [b"\xb5V      ", b"\xc2\xb5V     ", b"\xce\xbcV     ", b"uV      "])
def test_a_micro_sign_of_any_encoding_is_read(write_edf, micro):
    path = patched(write_edf("II", unit="XX"), b"XX      ", micro)
    np.testing.assert_allclose(read(path, as_stated=True).signal[0], ROW / 1000, atol=1e-6)


@pytest.mark.parametrize("labels", [("ECG1", "ECG2"), ("EKG 1", "EKG 2"), ("ECG", "EKG2")])
def test_numbered_leads_stay_separate_and_can_be_named(write_edf, labels):
    found = read(write_edf(*labels))
    assert found.leads == tuple(label.replace("EKG", "ECG") for label in labels)
    np.testing.assert_allclose(found.signal[1], 2 * ROW, atol=1e-3)
    assert read(write_edf(*labels), FileDefaults(leads=("I", "II"))).leads == ("I", "II")


@pytest.mark.parametrize(
    ("labels", "given", "leads"),
    [
        (("EKG1",), None, ("ECG",)),
        (("EKG1",), ("II",), ("II",)),
        (("ECG II", "EEG Fpz-Cz", "EKG1"), None, ("II", "ECG")),
        (("V6", "I"), ("I", "V6"), ("V6", "I")),
        (("left", "right"), ("I", "II"), ("I", "II")),
        (("MLII", "EMG chin"), None, ("MLII",)),
        (("EEG Fp1-REF", "EEG EKG1-REF", "LEG"), None, ("ECG",)),
        (("ECG LA-RA", "LEG"), ("II",), ("II",)),
    ],
)
def test_ecg_leads_are_found_by_their_labels(write_edf, labels, given, leads):
    assert read(write_edf(*labels), FileDefaults(leads=given)).leads == leads


@pytest.mark.parametrize("given", [None, ("I",)])
def test_a_single_signal_with_a_non_ecg_label_is_refused(write_edf, given):
    with pytest.raises(RecordingError, match="ECG leads in volts, found 'EEG Fpz-Cz'"):
        read(write_edf("EEG Fpz-Cz"), FileDefaults(leads=given))


@pytest.mark.parametrize("labels", [("Fp1",), ("C3", "C4", "Cz"), ("F1-Ref",), ("RESP",), ("Status",)])
@pytest.mark.parametrize("given", [None, ("I",)])
def test_an_eeg_is_not_read_as_an_ecg(write_edf, labels, given):
    with pytest.raises(
        RecordingError, match=f"a.edf: expected signals that are ECG leads in volts, found '{labels[0]}'"
    ):
        read(write_edf(*labels), FileDefaults(leads=given))


def test_an_ecg_is_found_among_electrodes_of_an_eeg(write_edf):
    assert read(write_edf("Fp1", "ECG", "C3")).leads == ("ECG",)


def test_chest_leads_by_iec_names(write_edf):
    found = read(write_edf("I", "II", "C1", "C6", "SpO2"))
    assert (found.leads, found.notes) == (("I", "II", "V1", "V6"), ("left out, no ECG leads: SpO2",))
    np.testing.assert_allclose(found.signal[3], 4 * ROW, atol=1e-3)


def test_every_signal_that_is_left_out_is_named(write_edf):
    found = read(write_edf("ECG", "C3", "C4", "Fp1", "X1", "EMG chin"))
    assert (found.leads, found.notes) == (("ECG",), ("left out, no ECG leads: C3, C4, Fp1, X1, EMG chin",))


def test_leads_at_another_rate_are_left_out_with_a_note(tmp_path):
    rows = [
        edfio.EdfSignal(ROW[: 10 * rate], rate, label=name, physical_dimension="mV")
        for name, rate in (("I", 250), ("II", 250), ("V1", 125))
    ]
    edfio.Edf(rows).write(tmp_path / "a.edf")
    found = read(tmp_path / "a.edf")
    assert (found.leads, found.rate_hz, found.notes) == (
        ("I", "II"),
        250.0,
        ("left out, at another rate: V1 (125 Hz)",),
    )


def test_two_leads_of_one_name_can_be_named(write_edf):
    assert read(write_edf("ECG", "ECG")).leads == ("ECG 1", "ECG 2")
    assert read(write_edf("ECG", "ECG"), FileDefaults(leads=("II", "V5"))).leads == ("II", "V5")


@pytest.mark.parametrize(("old", "new"), [(b"-9      9 ", b"9       9 "), (b"-32768  32767", b"32767   32767")])
def test_samples_without_a_scale_are_refused(write_edf, old, new):
    with pytest.raises(RecordingError, match="a.edf.*'II'.*the signal has no scale"):
        read(patched(write_edf("II"), old, new))


@pytest.mark.parametrize(("start", "stop"), [(184, 192), (236, 244), (252, 256)])
def test_a_header_without_its_numbers_is_no_header(write_edf, start, stop):
    path = write_edf("II")
    content = bytearray(path.read_bytes())
    content[start:stop] = b"x" * (stop - start)
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="a.edf: expected the header of an EDF file, found none"):
        read(path)


def test_what_edfio_warns_of_is_read_without_a_warning(write_edf):
    """The last data record is incomplete, as after a recording that was cut off."""
    path = write_edf("II")
    path.write_bytes(path.read_bytes() + bytes(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(read(path).signal[0], ROW, atol=1e-3)
