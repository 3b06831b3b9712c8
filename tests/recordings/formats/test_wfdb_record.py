import tracemalloc
import zipfile

import numpy as np
import pytest
import wfdb
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import Recording, read, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings.file_defaults import NO_DEFAULTS
from ecgquorum.recordings.filetree import Folder, OpenedFile
from ecgquorum.recordings.formats.wfdb_record import read_wfdb

from ...contracts.device_formats import write_flac


@pytest.mark.parametrize("fmt", ["16", "24", "32", "212", "80"])
def test_every_format_reads_as_the_wfdb_package_reads_it(write_record, fmt):
    path = write_record(fmt=fmt, leads=("ii", "V1"), units=("mV", "mV"))
    recording = read(path)
    expected = wfdb.rdrecord(str(path), return_res=32).p_signal.T
    np.testing.assert_array_equal(recording.signal, expected)
    assert recording.leads == ("II", "V1")
    assert recording.rate_hz == 300


def test_skewed_signals_read_as_the_wfdb_package_reads_them(write_record):
    path = write_record(leads=("ii", "V1"), units=("mV", "mV"))
    header = path.with_suffix(".hea")
    lines = header.read_text().splitlines()
    header.write_text("\n".join([*lines[:2], lines[2].replace("rec.dat 16", "rec.dat 16:7")]) + "\n")
    expected = wfdb.rdrecord(str(path), return_res=32).p_signal.T
    found = read(path).signal
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found[1, :100], 2 * found[0, :100]), "one is later than the other"


@pytest.mark.parametrize(("unit", "factor"), [("mV", 1.0), ("uV", 1e-3), ("\u00b5V", 1e-3), ("V", 1e3), ("nV", 1e-6)])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_units_are_brought_to_millivolts(write_record, unit, factor, encoding):
    path = write_record(units=("XX",))
    numbers = wfdb.rdrecord(str(path)).p_signal.T
    header = path.with_suffix(".hea")
    header.write_text(header.read_text().replace("XX", unit), encoding=encoding)
    np.testing.assert_allclose(read(path).signal, numbers * factor, rtol=1e-6)


def test_signals_that_are_no_voltage_are_left_out(write_record):
    path = write_record(leads=("II", "RESP"), units=("mV", "Ohm"))
    assert read(path).leads == ("II",)
    path = write_record("other", leads=("ABP",), units=("mmHg",))
    with pytest.raises(RecordingError, match="mmHg"):
        read(path)


def test_missing_samples_are_nan(write_record):
    signal = np.sin(np.arange(600) / 9)[None]
    signal[0, 100:110] = np.nan
    recording = read(write_record(signal=signal))
    assert np.flatnonzero(np.isnan(recording.signal[0])).tolist() == list(range(100, 110))


def test_diagnoses_are_kept(write_record):
    assert read(write_record(comments=("Age: 60", "Dx: 164889003,59118001"))).labels == ("164889003", "59118001")


def test_a_record_is_read_by_any_of_its_file_names(write_record, zipped, tmp_path):
    path = write_record("A1", folder=tmp_path / "set")
    archive = zipped(tmp_path / "set")
    names = [
        path,
        path.with_suffix(".hea"),
        path.with_suffix(".dat"),
        archive / "set/A1.hea",
        archive / "set/A1",
        archive / "A1",
    ]
    signals = [read(name).signal for name in names]
    for signal in signals[1:]:
        np.testing.assert_array_equal(signal, signals[0])


def edit_header(path, old, new):
    header = path.with_suffix(".hea")
    text = header.read_text()
    assert old in text
    header.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" 3000\n", " 3000000000\n", "expected 6000000000 bytes in rec.dat"),
        (" 3000\n", " 3001\n", "expected 6002 bytes in rec.dat .*found 6000"),
        ("rec 1 300", "rec 2 300", "2 signal lines"),
        ("rec 1 300", "rec 0 300", "0 signal lines"),
        ("rec 1 300", "rec/3 1 300", "WFDB|multi-segment"),
        ("rec 1 300", "rec 1 0.000001", "sampling rate"),
        ("rec 1 300", "rec 1 1e12", "sampling rate|WFDB"),
        ("rec.dat", "../rec.dat", "beside the header|invalid syntax"),
        ("rec.dat", "/etc/passwd", "beside the header|invalid syntax"),
        ("rec.dat", "none.dat", "none.dat"),
        ("rec.dat 16", "rec.dat 16x100000000", "expected 600000000000 bytes"),
        ("rec.dat 16", "rec.dat 16:999999999", "skewed"),
        ("rec.dat 16", "rec.dat 99", "signal format"),
        ("rec.dat 16", "rec.dat 516", "expected rec.dat to be a FLAC file"),
        ("rec.dat 16", "rec.dat 16+5000", "expected 11000 bytes"),
        ("mV", "furlong", "furlong"),
    ],
)
def test_a_false_header_is_refused_before_allocation(write_record, old, new, reason):
    path = edit_header(write_record(), old, new)
    read_once_to_load_what_is_lazy(path)
    tracemalloc.start()
    with pytest.raises(RecordingError, match=reason) as caught:
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "rec.hea" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert peak < 10e6


def read_once_to_load_what_is_lazy(path):
    with pytest.raises(RecordingError):
        read(path)


def test_a_missing_length_is_computed_from_the_file(write_record):
    path = edit_header(write_record(), " 3000\n", "\n")
    assert read(path).n_samples == 3000


def test_archives_are_unpacked_only_as_far_as_the_header_needs(write_record, zipped, tmp_path):
    path = write_record("A1", folder=tmp_path / "set")
    with path.with_suffix(".dat").open("ab") as file:
        file.write(bytes(50_000_000))
    archive = zipped(tmp_path / "set", zipfile.ZIP_DEFLATED)
    expected = read(path).signal
    tracemalloc.start()
    np.testing.assert_array_equal(read(archive / "A1").signal, expected)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_a_damaged_archive_is_an_error(write_record, zipped, tmp_path):
    write_record("A1", folder=tmp_path / "set", signal=np.random.default_rng(0).normal(size=(1, 20000)))
    archive = zipped(tmp_path / "set")
    content = bytearray(archive.read_bytes())
    content[1000:1020] = bytes(20)
    archive.write_bytes(content)
    with pytest.raises(RecordingError, match="A1.*damaged"):
        read(archive / "A1")


@given(data=st.data())
def test_damaged_headers_raise_recording_errors_only(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("mangled")
    wfdb.wrsamp(
        "r",
        fs=300,
        units=["mV"],
        sig_name=["I"],
        p_signal=np.sin(np.arange(900.0))[:, None],
        fmt=["16"],
        write_dir=str(folder),
    )
    text = bytearray((folder / "r.hea").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(text) - 1))
        if data.draw(st.booleans()):
            text[place] = data.draw(st.sampled_from([*b"0123456789 /+x:()-.\n#e", 0, 200]))
        else:
            text[place:place] = data.draw(st.binary(max_size=4))
    (folder / "r.hea").write_bytes(text)
    tracemalloc.start()
    try:
        read_wfdb(OpenedFile(Folder(folder), "r.hea"), NO_DEFAULTS)
    except RecordingError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.data
def test_real_records_read_straight_from_their_archives(real_data):
    recording = read(real_data / "physionet2017/training2017.zip/training2017/A00002")
    assert (recording.id, recording.leads, recording.rate_hz, recording.n_samples) == ("A00002", ("ECG",), 300.0, 9000)
    assert recording.signal[0, 0] == np.float32(0.128)
    twelve = read(real_data / "cpsc2018/cpsc2018_native_sample.zip/A3098")
    assert len(twelve.leads) == 12
    assert twelve.labels == ("164889003",)
    assert twelve.signal[:2, 0].tolist() == np.float32([-0.034, -0.050]).tolist()


def test_a_flac_file_must_be_as_large_and_as_long_as_its_header_says(tmp_path, monkeypatch):
    made = simulate("N", seed=1, seconds=2.0, rate_hz=250.0).recording
    path = write_flac(Recording("made", np.round(made.signal, 3), 250.0, made.leads), tmp_path)
    read(path)
    header = path.read_text()
    path.write_text(header.replace(" 250 500", " 250 501", 1))
    with pytest.raises(RecordingError, match="channels of 501 samples in .* of 500; the file is truncated or"):
        read(path)
    path.write_text(header)
    monkeypatch.setattr("ecgquorum.recordings.formats.wfdb_check._FLAC_BYTES", 10)
    with pytest.raises(RecordingError, match="expected at most 10 bytes in .*; split the record"):
        read(path)
