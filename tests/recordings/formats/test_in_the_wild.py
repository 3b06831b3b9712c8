"""Real files of every format, compared with other readers or with the text of the files themselves."""

import re

import numpy as np
import pydicom
import pytest
import wfdb
from sierraecg import read_file

from ecgquorum import read
from ecgquorum.errors import RecordingError
from ecgquorum.preprocessing.quality import assess_quality
from ecgquorum.recordings import STANDARD_LEADS, FileDefaults

pytestmark = pytest.mark.data


@pytest.fixture
def formats(real_data):
    folder = real_data / "formats"
    if not folder.is_dir():
        pytest.skip(f"no files of other formats at {folder}")
    return folder


def row(recording, lead):
    return recording.signal[recording.leads.index(lead)]


def test_one_recording_is_the_same_in_scp_dicom_and_aecg(formats):
    found = [read(formats / name) for name in ("scp/Example.scp", "dicom/Example.dcm", "aecg/Example.xml")]
    for other in found[1:]:
        for lead in STANDARD_LEADS:
            np.testing.assert_allclose(row(other, lead), row(found[0], lead), atol=1e-6)
    for one in found:
        facts = one.acquisition
        assert (facts.patient_id, facts.name, facts.sex) == ("SBJ-123", "Clark", "male")
        assert (facts.birth_date, facts.time) == ("1953-05-08", "2002-11-22T09:10:00")


def test_dicom_zeros_are_samples(formats):
    found = read(formats / "dicom/Example.dcm")
    assert np.isfinite(found.signal).all() and (found.signal == 0).any()
    expected = pydicom.dcmread(formats / "dicom/Example.dcm").waveform_array(0).T / 1000
    np.testing.assert_allclose(found.signal, expected, atol=1e-6)


def test_scp_that_counts_from_0(formats):
    found = read(formats / "scp/demo.scp")
    assert (found.rate_hz, found.signal.shape) == (1000.0, (8, 10000)) and "from 0" in found.notes[0]
    content = (formats / "scp/demo.scp").read_bytes()
    stored = np.frombuffer(content[-160000:], dtype="<i2").reshape(8, 10000)
    np.testing.assert_allclose(found.signal, stored * 183e-6, atol=1e-6)


def test_ishne(formats):
    found = read(formats / "ishne/ECG_P28.01.ecg")
    stored = np.fromfile(formats / "ishne/ECG_P28.01.ecg", dtype="<i2", offset=522).reshape(-1, 12).T
    np.testing.assert_allclose(found.signal, stored * 0.005, atol=1e-5)
    assert (found.leads, found.rate_hz) == (STANDARD_LEADS, 1000.0)


def test_mfer(formats):
    found = read(formats / "mfer/test-file.MWF")
    assert (found.leads, found.rate_hz, found.seconds) == (("II", "V5"), 250.0, 720.0)
    assert found.acquisition.patient_id == "12345" and "NIHON KOHDEN" in found.acquisition.device
    assert assess_quality(found).reasons == tuple(f"missing samples on {lead}: for 6.7 s" for lead in ("II", "V5"))


@pytest.mark.parametrize(("name", "leads"), [("1_lead.atc", STANDARD_LEADS[:1]), ("6_lead.atc", STANDARD_LEADS[:6])])
def test_atc(formats, name, leads):
    found = read(formats / "alivecor" / name)
    assert (found.leads, found.rate_hz, found.seconds) == (leads, 300.0, 30.0)
    if len(leads) == 6:
        np.testing.assert_allclose(row(found, "III"), row(found, "II") - row(found, "I"), atol=1.1e-3)


@pytest.mark.parametrize("name", ["ecg_2021-12-17.csv", "ecg_2023-07-04.csv"])
def test_apple_watch(formats, name):
    found = read(formats / "applewatch" / name)
    lines = (formats / "applewatch" / name).read_text().splitlines()
    numbers = [float(line) for line in lines if re.fullmatch(r"-?[\d.]+(e-?\d+)?", line)]
    np.testing.assert_allclose(found.signal[0], np.array(numbers) / 1000, atol=1e-6)
    assert (found.leads, found.rate_hz, found.acquisition.device) == (("I",), 513.625, "Watch5,1")


def test_csv(formats):
    found = read(formats / "csv/test_small.csv", FileDefaults(units="uV"), as_stated=True)
    expected = np.loadtxt(formats / "csv/test_small.csv", delimiter=",", skiprows=1)
    assert (found.rate_hz, found.leads) == (pytest.approx(180), ("channel_1", "channel_2", "channel_3"))
    np.testing.assert_allclose(found.signal, expected[:, 2:].T / 1000, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["edf/test_subsecond.edf", "edf/duplicate_channel_labels.edf", "bdf/test_bdf_stim_channel.bdf"]
)
def test_an_eeg_is_refused(formats, name):
    with pytest.raises(RecordingError, match="expected signals that are ECG leads in volts"):
        read(formats / name)


@pytest.mark.parametrize("name", ["129DYPRG.XML", "3191723_ZZDEMOPTONLY_1-04_orig.xml", "deid_3.xml"])
def test_sierra_without_its_calibration_pulse(formats, name):
    found = read(formats / "sierra" / name)
    assert 5000 <= found.n_samples <= 5350 and "calibration pulse removed" in found.notes[0]
    assert assess_quality(found).reasons == ()
    if name != "deid_3.xml":  # which the package cannot read
        for lead in read_file(str(formats / "sierra" / name)).leads:
            expected = np.array(lead.samples[: found.n_samples]) * 5e-3
            np.testing.assert_allclose(row(found, lead.label), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["fixed1/v102s", "s25047/s25047-2704-05-04-10-44", "flacformats", "binformats", "800"])
def test_wfdb_as_the_wfdb_package_reads_it(formats, name):
    found = read(formats / "wfdb" / f"{name}.hea", as_stated=True)
    expected = wfdb.rdrecord(str(formats / "wfdb" / name))
    n_leads = len(found.leads)  # those that are no ECG come last
    np.testing.assert_allclose(found.signal, expected.p_signal.T[:n_leads], rtol=1e-6, atol=1e-6)


def test_wfdb_with_several_samples_per_frame(formats):
    found = read(formats / "wfdb/03700181.hea")
    expected = wfdb.rdrecord(str(formats / "wfdb/03700181"), smooth_frames=False).e_p_signal[0]
    assert (found.leads, found.rate_hz) == (("MCL1",), 500.0)
    np.testing.assert_allclose(found.signal[0], expected, atol=1e-6)
