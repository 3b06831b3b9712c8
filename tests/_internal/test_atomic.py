import errno

import pytest

from ecgquorum._internal.atomic import atomic_folder, write_atomic


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file"
    write_atomic(path, "old")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"new")
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "a") as scratch:
        (scratch / "half").write_text("x")
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    with atomic_folder(tmp_path / "a") as scratch:
        (scratch / "all").write_text("x")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a" / "all").read_text() == "x"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_the_error_of_a_full_disk_names_the_file(tmp_path, monkeypatch, code):
    with pytest.raises(OSError, match="No space") as raised, atomic_folder(tmp_path / "a"):
        raise OSError(code, "No space left on device")
    assert raised.value.filename == str(tmp_path / "a")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(code, "No space left on device")))
    with pytest.raises(OSError, match="No space") as raised:
        write_atomic(tmp_path / "b", b"new")
    assert raised.value.filename == str(tmp_path / "b")
