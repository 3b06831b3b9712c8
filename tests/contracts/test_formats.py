"""What every reader must obey: the same recording comes back from every format, and damage is one clear line."""

import base64
import io

import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, TwelveLeadECGWaveformStorage
from scipy.io import savemat

from ecgquorum import Recording, Unreadable, read, read_all, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import Hints, write
from ecgquorum.recordings.leads import STANDARD_LEADS

RATE_HZ = 250.0


@pytest.fixture(scope="module")
def recording():
    """Twelve leads of 4 s, rounded to microvolts, so that every format can hold it."""
    made = simulate("AF", seed=4, seconds=4.0, rate_hz=RATE_HZ).recording
    return Recording("made", np.round(made.signal, 3), RATE_HZ, STANDARD_LEADS)


def microvolts(recording):
    return np.rint(recording.signal * 1000).astype(np.int16)


def write_hea(recording, path):
    return write(recording, path / "made.hea")


def write_edf(recording, path):
    return write(recording, path / "made.edf")


def write_csv(recording, path):
    return write(recording, path / "made.csv")


def write_npz(recording, path):
    return write(recording, path / "made.npz")


def write_tsv(recording, path):
    lines = ["time (ms)\t" + "\t".join(f"{lead} [uV]" for lead in recording.leads)]
    for i, row in enumerate(microvolts(recording).T):
        lines.append("\t".join(map(str, [i * 4, *row])))
    (path / "made.tsv").write_text("\n".join(lines))
    return path / "made.tsv"


def write_npy(recording, path):
    np.save(path / "made.npy", recording.signal)
    return path / "made.npy"


def write_plain_mat(recording, path):
    savemat(path / "made.mat", {"val": recording.signal})
    return path / "made.mat"


def write_dicom(recording, path, syntax=ExplicitVRLittleEndian):
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = syntax
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID = TwelveLeadECGWaveformStorage
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID = "1.2.3"
    data.PatientID = "p7"
    median, rhythm = Dataset(), Dataset()
    for group, signal in ((median, microvolts(recording)[:, :100]), (rhythm, microvolts(recording))):
        group.WaveformOriginality = "DERIVED" if group is median else "ORIGINAL"
        group.NumberOfWaveformChannels, group.NumberOfWaveformSamples = signal.shape
        group.SamplingFrequency = RATE_HZ
        group.WaveformBitsAllocated, group.WaveformSampleInterpretation = 16, "SS"
        channels = []
        for number, lead in enumerate(recording.leads):
            channel, source, unit = Dataset(), Dataset(), Dataset()
            source.CodeValue, source.CodingSchemeDesignator = f"x{number}", "99"
            source.CodeMeaning = f"Lead {lead} (Einthoven)"
            unit.CodeValue, unit.CodingSchemeDesignator, unit.CodeMeaning = "mV", "UCUM", "millivolt"
            if number % 2:
                unit.CodeValue, unit.CodeMeaning = "uV", "microvolt"
            channel.ChannelSourceSequence = [source]
            channel.ChannelSensitivityUnitsSequence = [unit]
            # half of the channels in millivolts, by a sensitivity and a correction factor, with a baseline
            channel.ChannelSensitivity = 2.0 if number % 2 else 0.002
            channel.ChannelSensitivityCorrectionFactor = 0.5
            channel.ChannelBaseline = 100.0 if number % 2 else 0.1
            channel.WaveformBitsStored = 16
            channels.append(channel)
        group.ChannelDefinitionSequence = channels
        order = "<" if syntax == ExplicitVRLittleEndian else ">"
        group.WaveformData = (signal.T - 100).astype(f"{order}i2").tobytes()
    data.WaveformSequence = [median, rhythm]
    data.save_as(path / "made.dcm", enforce_file_format=True)
    return path / "made.dcm"


def sequence_set(recording):
    sequences = [
        '<component><sequence><code code="TIME_ABSOLUTE"/><value xsi:type="GLIST_TS"><head value="20200101"/>'
        f'<increment value="{1000 / recording.rate_hz:g}" unit="ms"/></value></sequence></component>'
    ]
    for number, (lead, row) in enumerate(zip(recording.leads, microvolts(recording), strict=True)):
        unit, scale = ("uV", 2) if number % 2 else ("mV", 0.002)
        digits = " ".join(f"{value / 2 - 50:g}" for value in row)
        sequences.append(
            f'<component><sequence><code code="MDC_ECG_LEAD_{lead}"/><value xsi:type="SLIST_PQ">'
            f'<origin value="100" unit="uV"/><scale value="{scale}" unit="{unit}"/><digits>{digits}</digits>'
            "</value></sequence></component>"
        )
    return f"<component><sequenceSet>{''.join(sequences)}</sequenceSet></component>"


def write_aecg(recording, path, *others):
    """One series a recording."""
    series = "".join(f"<component><series>{sequence_set(one)}</series></component>" for one in (recording, *others))
    (path / "made.xml").write_text(
        '<?xml version="1.0"?><AnnotatedECG xmlns="urn:hl7-org:v3" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"{series}</AnnotatedECG>"
    )
    return path / "made.xml"


def encoded(samples):
    return base64.encodebytes(np.asarray(samples).astype("<i2").tobytes()).decode()


def write_muse(recording, path):
    leads = "".join(
        f"<LeadData><LeadSampleSize>2</LeadSampleSize><LeadAmplitudeUnitsPerBit>1.0</LeadAmplitudeUnitsPerBit>"
        f"<LeadAmplitudeUnits>MICROVOLTS</LeadAmplitudeUnits><LeadID>{lead.upper()}</LeadID>"
        f"<WaveFormData>{encoded(row)}</WaveFormData></LeadData>"
        for lead, row in zip(recording.leads, microvolts(recording), strict=True)
    )
    (path / "made.xml").write_text(
        '<?xml version="1.0" encoding="ISO-8859-1"?><!DOCTYPE RestingECG SYSTEM "restecg.dtd"><RestingECG>'
        "<PatientDemographics><PatientID>p7</PatientID></PatientDemographics>"
        "<Waveform><WaveformType>Median</WaveformType><SampleBase>500</SampleBase></Waveform>"
        "<Waveform><WaveformType>Rhythm</WaveformType><SampleBase>250</SampleBase><SampleExponent>0</SampleExponent>"
        f"{leads}</Waveform></RestingECG>"
    )
    return path / "made.xml"


def write_sierra(recording, path):
    labels = " ".join(recording.leads)
    (path / "made.xml").write_text(
        '<?xml version="1.0"?><restingecgdata xmlns="http://www3.medical.philips.com">'
        "<documentinfo><documenttype>SierraECG</documenttype><documentversion>1.04</documentversion></documentinfo>"
        "<dataacquisition><signalcharacteristics><samplingrate>250</samplingrate><resolution>1</resolution>"
        '</signalcharacteristics></dataacquisition><waveforms><parsedwaveforms durationperchannel="4000" '
        f'dataencoding="Base64" compressmethod="Uncompressed" numberofleads="12" leadlabels="{labels}">'
        f"{encoded(microvolts(recording))}</parsedwaveforms></waveforms></restingecgdata>"
    )
    return path / "made.xml"


def write_big_endian_dicom(recording, path):
    return write_dicom(recording, path, ExplicitVRBigEndian)


WRITERS = [
    write_hea,
    write_edf,
    write_csv,
    write_tsv,
    write_npz,
    write_npy,
    write_plain_mat,
    write_dicom,
    write_big_endian_dicom,
    write_aecg,
    write_muse,
    write_sierra,
]
HINTS = Hints(rate_hz=RATE_HZ, leads=STANDARD_LEADS, units="mV")


def hints_for(path):
    return HINTS if path.suffix in (".npy", ".mat") else Hints()


@pytest.mark.parametrize("write_it", WRITERS)
def test_the_same_recording_comes_back_from_every_format(write_it, recording, tmp_path):
    path = write_it(recording, tmp_path)
    again = read(path, hints_for(path))
    assert (again.id, again.leads) == ("made", STANDARD_LEADS)
    assert again.rate_hz == pytest.approx(RATE_HZ)
    assert again.signal.shape == recording.signal.shape
    np.testing.assert_allclose(again.signal, recording.signal, atol=2e-4)
    assert str(path) in again.source or str(path.with_suffix("")) in again.source


@pytest.mark.parametrize("write_it", WRITERS)
def test_folders_and_archives_hold_every_format(write_it, recording, tmp_path, zipped):
    folder = tmp_path / "some"
    folder.mkdir()
    path = write_it(recording, folder)
    (folder / "labels.csv").write_text("id,label\nmade,AF\n")
    (folder / "notes.txt").write_text("no recording")
    for place in (folder, zipped(folder)):
        (found,) = read_all([place], hints_for(path))
        assert not isinstance(found, Unreadable), found
        np.testing.assert_allclose(found.signal, recording.signal, atol=2e-4)
    np.testing.assert_allclose(read(zipped(folder) / "made", hints_for(path)).signal, recording.signal, atol=2e-4)


@pytest.mark.parametrize("write_it", WRITERS)
def test_a_file_that_is_cut_short_is_refused_in_one_line(write_it, recording, tmp_path):
    path = write_it(recording, tmp_path)
    damaged = path.with_suffix(".dat") if path.suffix == ".hea" else path
    content = damaged.read_bytes()
    for length in (0, 3, 140, 1000, len(content) // 2, len(content) - 3):
        damaged.write_bytes(content[:length])
        (found,) = read_all([path], hints_for(path))
        if isinstance(found, Unreadable):
            assert "made" in found.reason and "\n" not in found.reason
        else:  # a table that is cut within a number is a table still
            assert path.suffix in (".csv", ".tsv") and found.n_samples <= recording.n_samples


@pytest.mark.parametrize("write_it", [one for one in WRITERS if one not in (write_npy, write_plain_mat)])
def test_a_files_own_lead_names_are_believed(write_it, recording, tmp_path):
    backwards = Recording("made", recording.signal[::-1], RATE_HZ, STANDARD_LEADS[::-1])
    path = write_it(backwards, tmp_path)
    again = read(path, Hints(leads=STANDARD_LEADS))
    assert again.leads == STANDARD_LEADS[::-1]
    np.testing.assert_allclose(again.signal, backwards.signal, atol=2e-4)


def test_names_that_name_no_lead_give_way_to_those_that_are_given(tmp_path):
    (tmp_path / "t.csv").write_text("time (s),ch1 (mV),V1 (mV),ECG (mV)\n0,1,2,3\n0.004,4,5,6\n")
    assert read(tmp_path / "t.csv").leads == ("ch1", "V1", "ECG")
    assert read(tmp_path / "t.csv", Hints(leads=("I", "II", "III"))).leads == ("I", "V1", "III")
    with pytest.raises(RecordingError, match="expected 2 leads as given with --leads, found 3"):
        read(tmp_path / "t.csv", Hints(leads=("I", "II")))


@pytest.mark.parametrize("write_it", [write_npy, write_plain_mat])
def test_samples_alone_need_a_rate_and_a_unit(write_it, recording, tmp_path):
    path = write_it(recording, tmp_path)
    with pytest.raises(RecordingError, match="give it with --rate"):
        read(path)
    with pytest.raises(RecordingError, match="give it with --units"):
        read(path, Hints(rate_hz=250.0))
    with pytest.raises(RecordingError, match="unit of voltage such as mV or uV, found 'bar'"):
        read(path, Hints(rate_hz=250.0, units="bar"))
    with pytest.raises(RecordingError, match="expected 2 leads as given with --leads, found 12"):
        read(path, Hints(rate_hz=250.0, units="mV", leads=("I", "II")))


def test_the_sample_of_pydicom_is_read_as_pydicom_reads_it():
    path = get_testdata_file("waveform_ecg.dcm")
    found = read(path)
    assert (found.leads, found.rate_hz, found.n_samples) == (STANDARD_LEADS, 1000.0, 10000)
    expected = pydicom.dcmread(path).waveform_array(0).T / 1000
    np.testing.assert_allclose(found.signal, expected, atol=1e-5)
    np.testing.assert_allclose(found.signal[2], found.signal[1] - found.signal[0], atol=5e-3)  # Einthoven


def test_a_dicom_file_needs_no_ending(recording, tmp_path):
    write_dicom(recording, tmp_path).rename(tmp_path / "IM0001")
    (found,) = read_all([tmp_path])
    np.testing.assert_allclose(found.signal, recording.signal, atol=2e-4)
    assert found.patient == "p7"


def test_dicom_files_are_found_by_whatever_they_are_called(recording, tmp_path, zipped):
    folder = tmp_path / "some"
    folder.mkdir()
    path = write_dicom(recording, folder)
    for name in ("1.2.840.10008.4", "1.2.840.10008.5"):
        (folder / name).write_bytes(path.read_bytes())
    path.unlink()
    (folder / "notes.txt").write_text("no recording")
    for place in (folder, zipped(folder)):
        assert [found.id for found in read_all([place])] == ["1.2.840.10008.4", "1.2.840.10008.5"]
    (folder / "made.dcm").write_bytes(b"\0" * 500)
    with pytest.raises(RecordingError, match="found no DICM"):
        read(folder / "made.dcm")


def test_series_of_an_aecg_are_not_mixed(recording, tmp_path):
    slow = Recording("slow", recording.signal[6:8, ::2], RATE_HZ / 2, ("V1", "V2"))
    limbs = Recording("limbs", recording.signal[:2], RATE_HZ, ("I", "II"))
    for series in ((slow, limbs), (limbs, slow)):
        found = read(write_aecg(series[0], tmp_path, *series[1:]))
        assert (found.leads, found.rate_hz) == (("I", "II"), pytest.approx(RATE_HZ))
        np.testing.assert_allclose(found.signal, limbs.signal, atol=2e-4)


def test_sets_of_an_aecg_that_follow_one_another_are_not_mixed(recording, tmp_path):
    first, second = (
        Recording("part", recording.signal[rows], RATE_HZ, STANDARD_LEADS[rows]) for rows in (slice(3), slice(3, 6))
    )
    path = write_aecg(first, tmp_path, second)
    path.write_text(path.read_text().replace("</series></component><component><series>", ""))
    assert read(path).leads == ("I", "II", "III")


def test_entities_are_refused(tmp_path):
    (tmp_path / "bomb.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><AnnotatedECG>&b;</AnnotatedECG>'
    )
    with pytest.raises(RecordingError, match="bomb.xml.*EntitiesForbidden"):
        read(tmp_path / "bomb.xml")


def test_lying_arrays_allocate_nothing(tmp_path):
    target = io.BytesIO()
    np.lib.format.write_array_header_1_0(target, {"descr": "<f8", "fortran_order": False, "shape": (12, 10**12)})
    (tmp_path / "huge.npy").write_bytes(target.getvalue() + b"\0" * 100)
    with pytest.raises(RecordingError, match="huge.npy: expected 96000000000000 bytes of numbers, found 100"):
        read(tmp_path / "huge.npy", HINTS)
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(RecordingError, match="objects.npy"):
        read(tmp_path / "objects.npy", HINTS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "found nothing"),
        ("a,b\nx,y\n", "2 numbers on every line"),
        ("time (s),II (mV)\n0,1\n0.004,2\n0.1,3\n", "go up evenly"),
        ("time (s),II (mV)\n0,1\n0.004\n", "2 numbers on every line"),
        ("time (s)\n0\n0.004\n", "a column of samples"),
        ("II (mmHg)\n1\n2\n", "unit of voltage"),
        ("1,2,3\n4,5,6\n", "names for its 3 leads"),
    ],
)
def test_tables_that_are_no_ecg_are_refused(tmp_path, text, reason):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(RecordingError, match=f"t.csv.*({reason})"):
        read(tmp_path / "t.csv", Hints(rate_hz=250.0, units=None if "mmHg" in text else "mV"))


def test_a_missing_sample_in_a_table_is_nan(tmp_path):
    (tmp_path / "t.csv").write_text("I (mV),II (mV)\n1,\n,4\nnan,3\n2,2\n")
    found = read(tmp_path / "t.csv", Hints(rate_hz=250.0))
    np.testing.assert_array_equal(found.signal, np.float32([[1, np.nan, np.nan, 2], [np.nan, 4, 3, 2]]))
