"""The contract of readers: the same recording from every format, one-line errors for damaged files."""

import io
from dataclasses import replace

import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file
from sierraecg import read_file

from ecgquorum import ReadFailure, Recording, read, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import READERS, STANDARD_LEADS, FileDefaults, OpenedFile
from ecgquorum.recordings.filetree import Folder
from ecgquorum.recordings.formats import xml_ecg
from ecgquorum.recordings.readers import find_reader
from ecgquorum.recordings.units import millivolts_in

from .formats import (
    DEFAULTS,
    MIXED,
    RATE_HZ,
    WRITERS,
    defaults_for,
    held,
    packed,
    read_all,
    with_chunks,
    write_aecg,
    write_dicom,
    write_npy,
    write_plain_mat,
    write_sierra,
    write_xli,
)


@pytest.fixture(scope="module")
def recording():
    """Twelve leads of 4 s, rounded to microvolts, so that every format can hold it."""
    made = simulate("AF", seed=4, seconds=4.0, rate_hz=RATE_HZ).recording
    return Recording("made", np.round(made.signal, 3), RATE_HZ, STANDARD_LEADS)


def test_every_built_in_reader_is_covered(recording, tmp_path):
    paths = []
    for number, write_it in enumerate(WRITERS):
        (tmp_path / str(number)).mkdir()
        paths.append(write_it(recording, tmp_path / str(number)))
    built_in = [READERS.get(name) for name in READERS.builtin]
    assert {find_reader(OpenedFile(Folder(path.parent), path.name)) for path in paths} == set(built_in)
    unwritten = {suffix for one in built_in for suffix in one.suffixes} - {path.suffix for path in paths}
    assert unwritten == {".mfer", ".mfr"}  # other names of .mwf
    documents = [path.read_text() for path in paths if path.suffix == ".xml"]
    for kind in xml_ecg.KINDS:
        assert any(f"<{kind}" in document for document in documents), kind


@pytest.mark.parametrize("write_it", WRITERS)
def test_the_same_recording_comes_back_from_every_format(write_it, recording, tmp_path):
    path = write_it(recording, tmp_path)
    recording = held(write_it, recording)
    again = read(path, defaults_for(path))
    assert (again.id, again.leads, again.notes) == ("made", recording.leads, ())
    assert again.rate_hz == pytest.approx(RATE_HZ)
    assert again.signal.shape == recording.signal.shape
    np.testing.assert_allclose(again.signal, recording.signal, atol=2e-4)
    assert str(path) in again.source or str(path.with_suffix("")) in again.source
    assert again.correction is None
    assert (again.unit == "") if write_it in MIXED else (millivolts_in(again.unit) is not None)


@pytest.mark.parametrize("write_it", WRITERS)
def test_folders_and_archives_hold_every_format(write_it, recording, tmp_path, zipped):
    folder = tmp_path / "some"
    folder.mkdir()
    path = write_it(recording, folder)
    recording = held(write_it, recording)
    (folder / "labels.csv").write_text("id,label\nmade,AF\n")
    (folder / "notes.txt").write_text("no recording")
    for place in (folder, zipped(folder)):
        (found,) = read_all([place], defaults_for(path))
        assert not isinstance(found, ReadFailure), found
        np.testing.assert_allclose(found.signal, recording.signal, atol=2e-4)
    np.testing.assert_allclose(read(zipped(folder) / "made", defaults_for(path)).signal, recording.signal, atol=2e-4)


@pytest.mark.parametrize("write_it", WRITERS)
def test_a_file_that_is_cut_short_is_refused_in_one_line(write_it, recording, tmp_path):
    path = write_it(recording, tmp_path)
    damaged = max(tmp_path.glob("*.dat")) if path.suffix == ".hea" else path
    content = damaged.read_bytes()
    for length in (0, 3, 140, 1000, len(content) // 2, len(content) - 3):
        damaged.write_bytes(content[:length])
        (found,) = read_all([path], defaults_for(path))
        if isinstance(found, ReadFailure):
            assert "made" in found.reason and "\n" not in found.reason
        elif path.suffix == ".ecg":  # whose header may state more samples than there are
            assert "cut short" in found.notes[-1] and found.n_samples < recording.n_samples
        elif write_it.__name__ == "write_segments":  # half of the record is sound
            half = recording.n_samples // 2
            assert found.notes[-1].startswith("segment made_2 cannot be read")
            assert np.isnan(found.signal[:, half:]).all() and np.isfinite(found.signal[:, :half]).all()
        else:  # a table that is cut within a number is a table still
            assert path.suffix in (".csv", ".tsv") and found.n_samples <= recording.n_samples


@pytest.mark.parametrize("write_it", [one for one in WRITERS if one not in (write_npy, write_plain_mat)])
def test_lead_names_of_the_file_take_precedence(write_it, recording, tmp_path):
    backwards = Recording("made", recording.signal[::-1], RATE_HZ, STANDARD_LEADS[::-1])
    path = write_it(backwards, tmp_path)
    backwards = held(write_it, backwards)
    again = read(path, FileDefaults(leads=STANDARD_LEADS))
    assert set(again.leads) == set(backwards.leads)
    again = replace(
        again, signal=again.signal[[again.leads.index(lead) for lead in backwards.leads]], leads=backwards.leads
    )
    np.testing.assert_allclose(again.signal, backwards.signal, atol=2e-4)


def test_given_lead_names_replace_placeholder_names(tmp_path):
    (tmp_path / "t.csv").write_text("time (s),ch1 (mV),V1 (mV),ECG (mV)\n0,1,2,3\n0.004,4,5,6\n")
    assert read(tmp_path / "t.csv").leads == ("ch1", "V1", "ECG")
    assert read(tmp_path / "t.csv", FileDefaults(leads=("I", "II", "III"))).leads == ("I", "V1", "III")
    with pytest.raises(RecordingError, match="expected 2 leads as given with --leads, found 3"):
        read(tmp_path / "t.csv", FileDefaults(leads=("I", "II")))


def test_several_names_are_not_meant_for_a_file_of_one_named_lead(tmp_path):
    (tmp_path / "t.csv").write_text("time (s),ECG (mV)\n0,1\n0.004,2\n")
    assert read(tmp_path / "t.csv", FileDefaults(leads=STANDARD_LEADS)).leads == ("ECG",)
    assert read(tmp_path / "t.csv", FileDefaults(leads=("II",))).leads == ("II",)


@pytest.mark.parametrize("write_it", [write_npy, write_plain_mat])
def test_samples_alone_need_a_rate_and_a_unit(write_it, recording, tmp_path):
    path = write_it(recording, tmp_path)
    with pytest.raises(RecordingError, match="give it with --rate"):
        read(path)
    with pytest.raises(RecordingError, match="give it with --units"):
        read(path, FileDefaults(rate_hz=250.0))
    with pytest.raises(RecordingError, match="unit of voltage such as mV or uV, found 'bar'"):
        read(path, FileDefaults(rate_hz=250.0, units="bar"))
    with pytest.raises(RecordingError, match="expected 2 leads as given with --leads, found 12"):
        read(path, FileDefaults(rate_hz=250.0, units="mV", leads=("I", "II")))


def test_the_sample_of_pydicom_is_read_as_pydicom_reads_it():
    path = get_testdata_file("waveform_ecg.dcm")
    found = read(path)
    assert (found.leads, found.rate_hz, found.n_samples) == (STANDARD_LEADS, 1000.0, 10000)
    expected = pydicom.dcmread(path).waveform_array(0).T / 1000
    np.testing.assert_allclose(found.signal, expected, atol=1e-5)
    np.testing.assert_allclose(found.signal[2], found.signal[1] - found.signal[0], atol=5e-3)  # Einthoven


def test_a_dicom_file_needs_no_suffix(recording, tmp_path):
    write_dicom(recording, tmp_path).rename(tmp_path / "IM0001")
    (found,) = read_all([tmp_path])
    np.testing.assert_allclose(found.signal, recording.signal, atol=2e-4)
    assert found.patient == "p7"


def test_dicom_files_are_found_with_any_name(recording, tmp_path, zipped):
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
    found = read(path)
    assert found.leads == ("I", "II", "III")
    assert found.notes == ("1 of its 2 sets of sequences was read; the others are left out",)
    assert read(write_aecg(first, tmp_path)).notes == ()


def test_the_longest_original_group_of_a_dicom_file_is_read(recording, tmp_path):
    path = write_dicom(recording, tmp_path)
    data = pydicom.dcmread(path)
    short, whole = data.WaveformSequence
    short.WaveformOriginality = "ORIGINAL"
    for groups in ([short, whole], [whole, short]):
        data.WaveformSequence = groups
        data.save_as(path)
        np.testing.assert_allclose(read(path).signal, recording.signal, atol=2e-4)
        assert read(path).notes == ("1 of its 2 waveform groups was read; the others are left out",)
    assert read(write_dicom(recording, tmp_path)).notes == ()


def test_compressed_limb_leads_are_restored_by_their_names(recording, tmp_path):
    """With 12 and 16 leads in any order; leads that no rule derives are unchanged."""
    more = ("V3R", "V4R", "V7", "V8")
    signal = np.concatenate([recording.signal[::-1], recording.signal[6:10]])
    for leads in ((*STANDARD_LEADS[::-1], *more), ("V6", "V5", "V4"), ("V6", "V5", "V4", "V3", "V2", "V1")):
        made = Recording("made", signal[: len(leads)], RATE_HZ, leads)
        found = read(write_xli(made, tmp_path))
        assert found.leads == leads
        np.testing.assert_allclose(found.signal, made.signal, atol=2e-4)
    made = Recording("made", recording.signal[2:4], RATE_HZ, ("III", "aVR"))
    with pytest.raises(RecordingError, match="made.xml.*cannot be restored without I and II"):
        read(write_xli(made, tmp_path))


def test_compressed_samples_are_unpacked_as_the_sierraecg_package_does(recording, tmp_path):
    write_xli(recording, tmp_path)
    for found, lead in zip(
        read(tmp_path / "made.xml").signal, read_file(str(tmp_path / "made.xml")).leads, strict=True
    ):
        np.testing.assert_allclose(found, lead.samples / 1000, atol=1e-6)


def test_decompression_bombs_in_sierra_xml_are_refused(recording, tmp_path):
    """4 KB of codes, each for a string that is longer by one byte than the one before."""
    bomb = packed([0, *range(256, 1023), *[1022] * 2500])
    path = with_chunks(write_sierra(recording, tmp_path), bomb * 12)
    with pytest.raises(RecordingError, match="made.xml.*found that its compressed leads unpack to more than"):
        read(path)


def test_entities_are_refused(tmp_path):
    (tmp_path / "bomb.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><AnnotatedECG>&b;</AnnotatedECG>'
    )
    with pytest.raises(RecordingError, match="bomb.xml.*EntitiesForbidden"):
        read(tmp_path / "bomb.xml")


def test_arrays_with_false_shapes_allocate_nothing(tmp_path):
    target = io.BytesIO()
    np.lib.format.write_array_header_1_0(target, {"descr": "<f8", "fortran_order": False, "shape": (12, 10**12)})
    (tmp_path / "huge.npy").write_bytes(target.getvalue() + b"\0" * 100)
    with pytest.raises(RecordingError, match="huge.npy: expected 96000000000000 bytes of numbers, found 100"):
        read(tmp_path / "huge.npy", DEFAULTS)
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(RecordingError, match="objects.npy"):
        read(tmp_path / "objects.npy", DEFAULTS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "found nothing"),
        ("a,b\nx,y\n", "line 2: expected numbers, found text"),
        ("time (s),II (mV)\n0,1\n0.004,2\n0.1,3\n", "line [34]: expected evenly increasing times"),
        ("time (s),II (mV)\n0,1\n0.004\n", "line 3: expected 2 numbers on every line, found 1$"),
        (
            "time (s),II (mV)\n0,1\n0.004,2\n0.008,oops\n",
            "line 4: expected 2 numbers on every line, found text",
        ),
        ("time (s)\n0\n0.004\n", "a column of samples"),
        ("II (mmHg)\n1\n2\n", "unit of voltage"),
        ("1,2,3\n4,5,6\n", "names for its 3 leads"),
    ],
)
def test_tables_without_an_ecg_are_refused(tmp_path, text, reason):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(RecordingError, match=f"t.csv.*({reason})"):
        read(tmp_path / "t.csv", FileDefaults(rate_hz=250.0, units=None if "mmHg" in text else "mV"))


def test_a_missing_sample_in_a_table_is_nan(tmp_path):
    (tmp_path / "t.csv").write_text("I (mV),II (mV)\n1,\n,4\nnan,3\n2,2\n")
    found = read(tmp_path / "t.csv", FileDefaults(rate_hz=250.0))
    np.testing.assert_array_equal(found.signal, np.float32([[1, np.nan, np.nan, 2], [np.nan, 4, 3, 2]]))
