import io
import os
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from ecgquorum import ReadFailure, Recording, read
from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import Folder, ZipArchive
from ecgquorum.recordings.readers import read_from

from ..contracts.formats import read_all


def write_cpsc(path, data):
    savemat(path, {"ECG": {"sex": "Male", "age": 60, "data": data}})
    return path


def test_the_original_cpsc_struct_is_read(tmp_path):
    data = np.random.default_rng(0).normal(size=(12, 4000))
    recording = read(write_cpsc(tmp_path / "A0001.mat", data))
    np.testing.assert_array_equal(recording.signal, data.astype(np.float32))
    assert (recording.id, recording.rate_hz, len(recording.leads)) == ("A0001", 500.0, 12)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"other": np.zeros((12, 100))}, "struct ECG"),
        ({"ECG": {"data": np.zeros((3, 100))}}, "12 leads"),
        ({"ECG": {"data": np.zeros((12, 2, 2))}}, "12 x 2 x 2"),
        ({"ECG": {"other": 1}}, "no field data"),
        ({"ECG": np.zeros(3)}, "no struct"),
        ({"ECG": {"data": "text"}}, "no numbers"),
    ],
)
def test_other_mat_files_are_refused(tmp_path, content, reason):
    savemat(tmp_path / "x.mat", content)
    with pytest.raises(RecordingError, match=f"x.mat.*{reason}"):
        read(tmp_path / "x.mat")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("compressed", [False, True])
def test_every_way_of_writing_the_struct_is_read(tmp_path, dtype, compressed):
    data = (np.random.default_rng(0).normal(size=(12, 700)) * 100).astype(dtype)
    savemat(tmp_path / "a.mat", {"x": 3, "ECG": {"sex": "F", "age": 3.0, "data": data}}, do_compression=compressed)
    np.testing.assert_array_equal(read(tmp_path / "a.mat").signal, data.astype(np.float32))


def test_decompression_bombs_in_mat_files_are_refused(tmp_path):
    target = io.BytesIO()
    savemat(target, {"ECG": {"data": np.zeros((2, 2))}})
    bomb = zlib.compress(bytes(300 << 20))
    element = (15).to_bytes(4, "little") + len(bomb).to_bytes(4, "little") + bomb
    (tmp_path / "bomb.mat").write_bytes(target.getvalue()[:128] + element)
    with pytest.raises(RecordingError, match="unpacks to more than"):
        read(tmp_path / "bomb.mat")


@given(data=st.data())
def test_damaged_mat_files_raise_recording_errors_only_and_allocate_little(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("mangled")
    savemat(folder / "m.mat", {"ECG": {"sex": "F", "data": np.ones((12, 50))}})
    content = bytearray((folder / "m.mat").read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(100, 500))
        content[place : place + 4] = data.draw(st.binary(min_size=4, max_size=4))
    (folder / "m.mat").write_bytes(content)
    tracemalloc.start()
    try:
        read(folder / "m.mat")
    except RecordingError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20e6


@given(data=st.data())
def test_damaged_archives_do_not_stop_a_batch(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("mangled")
    with zipfile.ZipFile(folder / "z.zip", "w", data.draw(st.sampled_from([0, 8, 12, 14]))) as archive:
        archive.writestr("r.hea", "r 1 300 900\nr.dat 16 200(0)/mV 16 0 0 0 0 I\n")
        archive.writestr("r.dat", bytes(1800))
    content = bytearray((folder / "z.zip").read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "z.zip").write_bytes(content)
    assert len(list(read_all([folder / "z.zip"]))) >= 1


def test_reading_a_folder_reports_bad_files_and_continues(write_record, zipped, tmp_path):
    folder = tmp_path / "set"
    for name in ("a", "b", "c", "d"):
        write_record(name, folder=folder)
    (folder / "b.dat").write_bytes(b"short")
    (folder / "c.hea").write_text("nonsense")
    (folder / "e.mat").write_bytes(b"not a mat file")
    (folder / "notes.txt").write_text("not a recording")
    archive = zipped(folder)
    for place in (folder, archive):
        found = list(read_all([place]))
        assert [r.id for r in found if isinstance(r, Recording)] == ["a", "d"]
        bad = [r for r in found if isinstance(r, ReadFailure)]
        assert [b.source.rsplit("/", 1)[-1] for b in bad] == ["b.hea", "c.hea", "e.mat"]
        assert all(b.source in b.reason or b.source.removesuffix(".hea") in b.reason for b in bad)


def test_missing_paths_are_reported_in_order(tmp_path, write_record):
    good = write_record("good")
    (tmp_path / "empty").mkdir()
    found = list(read_all([tmp_path / "missing", good, tmp_path / "empty"]))
    assert [type(f) for f in found] == [ReadFailure, Recording, ReadFailure]
    assert "no such file" in found[0].reason
    assert "found none" in found[2].reason


def test_a_short_name_in_an_archive_must_be_unique(write_record, zipped, tmp_path):
    write_record("A1", folder=tmp_path / "set" / "one")
    write_record("A1", folder=tmp_path / "set" / "two")
    archive = zipped(tmp_path / "set")
    assert read(archive / "set/one/A1").id == "A1"
    with pytest.raises(RecordingError, match="2 of that name"):
        read(archive / "A1")
    with pytest.raises(RecordingError, match="none of that name"):
        read(archive / "A2")
    with pytest.raises(RecordingError, match="found an archive"):
        read(archive)


def test_folders_and_unknown_files_are_refused(tmp_path):
    with pytest.raises(RecordingError, match="expected one recording, found a folder"):
        read(tmp_path)
    (tmp_path / "x.pdf").write_bytes(b"%PDF")
    with pytest.raises(RecordingError, match="found none of them"):
        read(tmp_path / "x.pdf")
    (tmp_path / "x.zip").write_bytes(b"not a zip")
    with pytest.raises(RecordingError, match="zip archive"):
        read(tmp_path / "x.zip" / "a")


def test_a_damaged_file_of_no_format_does_not_lose_the_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("README", "what this is")
        archive.writestr("r.csv", "time (s),I (mV)\n0,1\n0.004,2\n0.008,1\n")
    content = (tmp_path / "z.zip").read_bytes()
    (tmp_path / "z.zip").write_bytes(content.replace(b"what this is", b"what this IS"))
    assert [found.id for found in read_all([tmp_path / "z.zip"])] == ["r"]
    with pytest.raises(RecordingError, match="README.*damaged"):
        read_from(ZipArchive(tmp_path / "z.zip"), "README")


def test_files_that_cannot_be_opened_are_skipped(tmp_path, write_record):
    """As files that disappear while a folder is listed; here their paths are too long."""
    write_record("good")
    (tmp_path / "gone.hea").symlink_to(tmp_path / "nowhere")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        os.close(os.open("f" * 250, os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        folder = inner
    os.close(folder)
    assert [found.id for found in read_all([tmp_path])] == ["good"]


def test_a_signal_file_name_that_is_too_long_is_an_error(tmp_path):
    (tmp_path / "a.hea").write_text(f"a 1 300 900\n{'d' * 300}.dat 16 200(0)/mV 16 0 0 0 0 I\n")
    for name in ("d" * 300, "b\0"):
        assert Folder(tmp_path).size(name) is None
    (found,) = read_all([tmp_path])
    assert "expected its signal file ddd" in found.reason
