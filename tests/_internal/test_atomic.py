"""Files and folders are written atomically, and errors name them."""

import errno
import sqlite3
from pathlib import Path

import pytest

from ecgquorum._internal.atomic import atomic_folder, check_disk_full, write_atomic


def test_files_are_replaced_atomically(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file"
    write_atomic(path, "old")

    def fail(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left on device; free some disk space") as caught:
        write_atomic(path, b"new")
    assert caught.value.filename == str(path) and caught.value.errno == errno.ENOSPC
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_folders_are_created_atomically(tmp_path):
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "a") as scratch:
        (scratch / "half").write_text("x")
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    with atomic_folder(tmp_path / "a") as scratch:
        (scratch / "all").write_text("x")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a" / "all").read_text() == "x"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("ecgquorum._internal.atomic._scratch_path", lambda path: Path("/dev/full"))
    monkeypatch.setattr("pathlib.Path.unlink", lambda path, missing_ok: None)
    with pytest.raises(OSError, match="could not be written: No space left on device") as caught:
        write_atomic(tmp_path / "file", b"new")
    assert caught.value.filename == str(tmp_path / "file")


def test_errors_about_other_files_keep_their_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_folder(tmp_path / "a"):
        (tmp_path / "missing").read_text()
    assert caught.value.filename == str(tmp_path / "missing")


def test_other_errors_are_raised_as_they_are(tmp_path):
    with pytest.raises(TimeoutError, match="^no answer$"), atomic_folder(tmp_path / "a"):
        raise TimeoutError("no answer")


def test_a_full_disk_under_a_database_names_the_database(tmp_path):
    path = tmp_path / "journal.sqlite"
    with pytest.raises(OSError, match="No space left on device; free some disk space") as caught:
        check_disk_full(path, sqlite3.OperationalError("database or disk is full"))
    assert caught.value.filename == str(path)
    check_disk_full(path, sqlite3.OperationalError("disk I/O error"))  # with space left it is another error
    check_disk_full(path, sqlite3.DatabaseError("file is not a database"))
