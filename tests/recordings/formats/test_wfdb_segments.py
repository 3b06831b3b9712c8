"""WFDB records of several segments, with several samples per frame, or compressed."""

import re

import numpy as np
import pytest
import wfdb

from ecgquorum import Recording, read, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import FileDefaults
from ecgquorum.recordings.filetree import Folder, ZipArchive
from ecgquorum.recordings.readers import recording_names
from ecgquorum.recordings.wfdb_files import list_files

from ...contracts.device_formats import write_flac, write_segment, write_segments


@pytest.fixture
def recording():
    made = simulate("N", seed=1, seconds=4.0, rate_hz=250.0).recording
    return Recording("made", np.round(made.signal[:3], 3), 250.0, ("I", "II", "V1"))


@pytest.fixture
def variable(recording, tmp_path):
    """I and II, a gap of 100 samples, II and V1 in the other order: a record with a variable layout."""
    (tmp_path / "layout.hea").write_text(
        "layout 3 250 0\n~ 0 1000/mV 16 0 0 0 0 I\n~ 0 1000/mV 16 0 0 0 0 II\n~ 0 1000/mV 16 0 0 0 0 V1\n"
    )
    write_segment(tmp_path, "part_1", recording.signal[:2, :400], recording, ("I", "II"))
    write_segment(tmp_path, "part_2", recording.signal[[2, 1], 500:], recording, ("V1", "II"))
    (tmp_path / "whole.hea").write_text("whole/4 3 250 1000\nlayout 0\npart_1 400\n~ 100\npart_2 500\n")
    return tmp_path / "whole.hea"


def test_a_variable_layout_is_joined_by_names_with_gaps_missing(variable, recording):
    found = read(variable)
    expected = recording.signal.copy()
    expected[:, 400:500] = np.nan
    expected[0, 500:] = np.nan
    expected[2, :400] = np.nan
    assert (found.leads, found.rate_hz, found.id) == (("I", "II", "V1"), 250.0, "whole")
    np.testing.assert_allclose(found.signal, expected, atol=1e-6)
    np.testing.assert_allclose(found.signal, wfdb.rdrecord(str(variable.with_suffix(""))).p_signal.T, atol=1e-6)


def test_a_fixed_layout_reads_as_the_wfdb_package_reads_it(recording, tmp_path):
    path = write_segments(recording, tmp_path)
    np.testing.assert_allclose(read(path).signal, wfdb.rdrecord(str(path.with_suffix(""))).p_signal.T, atol=1e-6)


def test_segments_are_no_recordings_of_their_own(variable, write_record, zipped, tmp_path):
    write_record("alone", folder=tmp_path / "set")
    for path in tmp_path.glob("*.*"):
        path.rename(tmp_path / "set" / path.name)
    trees = Folder(tmp_path / "set"), ZipArchive(zipped(tmp_path / "set"))
    for tree, prefix in zip(trees, ("", "set/"), strict=True):
        assert recording_names(tree) == [f"{prefix}alone.hea", f"{prefix}whole.hea"]
        parts = ["whole.hea", "layout.hea", "part_1.hea", "part_1.dat", "part_2.hea", "part_2.dat"]
        assert list_files(tree, f"{prefix}whole.hea") == [prefix + name for name in parts]


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        (
            "whole.hea",
            "part_2 500",
            "part_2 501",
            "expected at most 10000 segments of 1000 samples together, found 4 of 1001",
        ),
        ("whole.hea", "3 250 1000", "3 250", "part_2: expected 500 samples at 250 Hz in part_2.hea, found 400"),
        (
            "whole.hea",
            "part_2",
            "none",
            "1 of its 4 segments cannot be read, 56% of its samples.*none.hea beside the header",
        ),
        ("whole.hea", "part_2", "whole", "expected whole to be a segment"),
        ("whole.hea", "part_2", "../part_2", "beside the header, found none|expected a readable WFDB record"),
        ("whole.hea", "3 250 1000", "3 1e9 1000", "sampling rate"),
        ("part_2.hea", "II", "aVF", "part_2: expected 1 samples per frame of aVF in all segments"),
    ],
)
def test_segments_that_do_not_fit_are_refused(variable, file, old, new, reason):
    path = variable.parent / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    if "found 400" in reason:
        part = variable.parent / "part_2.hea"
        part.write_text(part.read_text().replace(" 500", " 400", 1))
    with pytest.raises(RecordingError, match=f"whole.hea.*{reason}"):
        read(variable)


def break_header(folder):
    (folder / "part_1.hea").write_bytes(b"\xff\0 not a header")


def break_rate(folder):
    header = folder / "part_1.hea"
    header.write_text(header.read_text().replace(" 250 ", " 500 ", 1))


def cut_samples(folder):
    (folder / "part_1.dat").write_bytes((folder / "part_1.dat").read_bytes()[:100])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (break_header, "part_1.hea.*"),
        (break_rate, "expected 400 samples at 250 Hz in part_1.hea, found 400 at 500 Hz"),
        (cut_samples, "part_1.hea: expected 2400 bytes in part_1.dat.*found 100.*"),
        (lambda folder: (folder / "part_1.hea").unlink(), "expected part_1.hea beside the header, found none"),
        (lambda folder: (folder / "part_1.dat").unlink(), "expected its signal file part_1.dat beside it, found none"),
    ],
)
def test_a_segment_that_cannot_be_read_is_missing_samples_with_a_note(variable, recording, damage, reason):
    damage(variable.parent)
    found = read(variable)
    expected = recording.signal.copy()
    expected[:, :500] = np.nan
    expected[0] = np.nan
    np.testing.assert_allclose(found.signal, expected, atol=1e-6)
    (note,) = found.notes
    assert re.fullmatch(f"segment part_1 cannot be read, its 400 samples are missing: .*{reason}", note), note


def test_a_layout_that_cannot_be_read_is_that_of_the_segments(variable, recording):
    (variable.parent / "layout.hea").unlink()
    found = read(variable)
    assert found.leads == ("I", "II", "V1")
    np.testing.assert_allclose(found.signal[1, 500:], recording.signal[1, 500:], atol=1e-6)
    assert [note.partition(":")[0] for note in found.notes] == [
        "segment layout cannot be read, its 0 samples are missing"
    ]


def test_chest_leads_are_named_alike_in_all_segments(variable, recording):
    """V1 of a segment without a limb lead is known by the limb leads of the others."""
    for name in ("layout", "part_2"):
        header = variable.with_name(f"{name}.hea")
        header.write_text(header.read_text().replace("V1", "C1").replace("II", "II" if name == "layout" else "RESP"))
    found = read(variable)
    assert (found.leads, found.notes) == (("I", "II", "V1"), ("left out, no ECG leads: RESP",))
    np.testing.assert_allclose(found.signal[2, 500:], recording.signal[2, 500:], atol=1e-6)


def test_a_false_length_of_a_segment_is_refused_before_allocation(variable):
    part = variable.parent / "part_2.hea"
    part.write_text(part.read_text().replace(" 500", " 500000000000", 1))
    variable.write_text(
        variable.read_text().replace("1000\n", "500000000500\n").replace("part_2 500", "part_2 500000000000")
    )
    with pytest.raises(RecordingError, match="part_2.hea: expected 3000000000000 bytes in part_2.dat"):
        read(variable)


def write_frames(tmp_path, per_frame, names, rate_hz=125):
    """Ramps: sample i of a signal is i; several samples per frame."""
    length = 600
    wfdb.Record(
        record_name="frames",
        n_sig=len(names),
        fs=rate_hz,
        sig_len=length,
        file_name=["frames.dat"] * len(names),
        fmt=["24"] * len(names),
        adc_gain=[1000.0] * len(names),
        baseline=[0] * len(names),
        units=["mV"] * len(names),
        sig_name=list(names),
        e_d_signal=[np.arange(length * n) for n in per_frame],
        samps_per_frame=list(per_frame),
        adc_res=[16] * len(names),
        adc_zero=[0] * len(names),
        init_value=[0] * len(names),
        checksum=[0] * len(names),
        block_size=[0] * len(names),
        byte_offset=[None] * len(names),
        skew=[None] * len(names),
    ).wrsamp(expanded=True, write_dir=str(tmp_path))
    return tmp_path / "frames.hea"


def test_several_samples_per_frame_multiply_the_rate(tmp_path):
    found = read(write_frames(tmp_path, (4, 1, 1), ("MCL1", "ABP", "RESP")), as_stated=True)
    assert (found.leads, found.rate_hz, found.n_samples) == (("MCL1",), 500.0, 2400)
    assert found.notes == ("left out, no ECG leads: ABP, RESP",)
    np.testing.assert_allclose(found.signal[0], np.arange(2400) / 1000, atol=1e-6)


def test_leads_at_another_rate_are_left_out_with_a_note(tmp_path):
    found = read(write_frames(tmp_path, (2, 2, 1), ("I", "II", "V1")), as_stated=True)
    assert (found.leads, found.rate_hz) == (("I", "II"), 250.0)
    assert found.notes == ("left out, at another rate: V1 (125 Hz)",)


def test_a_record_of_other_signals_only_is_refused(write_record):
    path = write_record(leads=("RESP",), units=("mV",))
    with pytest.raises(RecordingError, match="rec.hea: expected at least one ECG lead.*found RESP in mV"):
        read(path)


def test_two_leads_of_one_name_can_be_named(write_record):
    path = write_record(leads=("ECG", "XYZ"), units=("mV", "mV"))
    header = path.with_suffix(".hea")
    header.write_text(header.read_text().replace("XYZ", "ECG"))
    assert read(path).leads == ("ECG 1", "ECG 2")
    assert read(path, FileDefaults(leads=("II", "V5"))).leads == ("II", "V5")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" 1000\n", " 4000000000\n", "expected 3 channels of 4000000000 samples in made_0.dat, found 3 of 1000"),
        ("V1\n", "V1\nmade_0.dat 516 1000/mV 16 0 0 0 0 V2\n", "4 signal lines|3 signal lines|expected 4 channels"),
    ],
)
def test_a_flac_file_must_hold_what_the_header_states(recording, tmp_path, old, new, reason):
    path = write_flac(recording, tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new).replace("made 3 ", "made 4 " if "V2" in new else "made 3 "))
    with pytest.raises(RecordingError, match=reason):
        read(path)


def test_differences_of_format_8_are_summed(tmp_path):
    """The wfdb package does not write this format."""
    steps = np.random.default_rng(0).integers(-100, 100, size=500)
    (tmp_path / "d.dat").write_bytes(steps.astype(np.int8).tobytes())
    (tmp_path / "d.hea").write_text("d 1 250 500\nd.dat 8 1000/mV 12 0 7 0 0 II\n")
    found = read(tmp_path / "d.hea", as_stated=True)
    np.testing.assert_allclose(found.signal[0], (7 + np.cumsum(steps)) / 1000, atol=1e-6)


def test_a_record_of_gaps_alone_is_refused(tmp_path):
    (tmp_path / "gaps.hea").write_text("gaps/1 1 250 1000\n~ 1000\n")
    with pytest.raises(RecordingError, match="segment ~: it has none with samples"):
        read(tmp_path / "gaps.hea")
