"""Discovery lists every recording once."""

import os
import tempfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from ecgquorum import simulate
from ecgquorum.recordings import write
from ecgquorum.recordings.discovery import (
    ReadFailure,
    RecordingPath,
    discover_recordings,
    exists,
    is_settled,
    list_everything,
    printable,
)


@pytest.fixture
def folder(tmp_path):
    recording = simulate("N", seed=1, leads=("ECG",), seconds=3).recording
    (tmp_path / "in" / "deep").mkdir(parents=True)
    write(recording, tmp_path / "in" / "a.hea")
    write(recording, tmp_path / "in" / "deep" / "b.npz")
    return tmp_path / "in"


def names(found):
    return sorted(str(path.name) for path in found)


def test_a_recording_counts_once_however_it_is_named(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    for paths in (["in"], ["in", folder], ["in", "in/a.hea", "in/a.dat", "in/../in"], [folder / "a", "in"]):
        found = list(discover_recordings(paths))
        assert names(found) == ["a.hea", "deep/b.npz"] and all(Path(path.tree).is_absolute() for path in found)


def test_a_file_can_be_left_out(folder):
    found = list_everything([folder], exclude=lambda path: path == folder / "deep" / "b.npz")
    assert names(found.recordings) == ["a.hea"] and not found.skipped


def test_a_stamp_changes_with_the_file(folder):
    (before,) = (path for path in discover_recordings([folder]) if path.name == "a.hea")
    assert before in list(discover_recordings([folder]))
    os.utime(folder / "a.dat", ns=(1, 1))
    (after,) = (path for path in discover_recordings([folder]) if path.name == "a.hea")
    assert (after.tree, after.name) == (before.tree, before.name) and after.stamp != before.stamp


def test_names_that_are_not_unicode_are_escaped(folder):
    strange = os.fsencode(folder) + b"/caf\xe9.npz"
    Path(os.fsdecode(strange)).write_bytes((folder / "deep" / "b.npz").read_bytes())
    (found,) = (path for path in discover_recordings([folder]) if path.name.startswith("caf"))
    assert str(found).encode().endswith(rb"/caf\xe9.npz")
    assert printable("plain ü") == "plain ü"


def test_a_header_that_names_an_impossible_file_stops_nothing(tmp_path):
    write(simulate("N", seed=1, seconds=4, leads=("ECG",)).recording, tmp_path / "good.npz")
    (tmp_path / "bad.hea").write_bytes(b"bad 1 300 1200\nb\0d.dat 16 1000 16 0 0 0 0 ECG\n")
    found = {Path(one.name).name for one in discover_recordings([str(tmp_path)]) if isinstance(one, RecordingPath)}
    assert found == {"good.npz", "bad.hea"}


def test_a_missing_file_gives_a_failure(tmp_path):
    (found,) = discover_recordings([tmp_path / "nowhere.edf"])
    assert isinstance(found, ReadFailure) and "found no such file" in found.reason


def test_files_being_copied_are_not_settled(folder):
    path = RecordingPath(str(folder), "a.hea")
    assert not is_settled(path)
    old = time.time() - 10
    os.utime(folder / "a.hea", (old, old))
    assert not is_settled(path)
    os.utime(folder / "a.dat", (old, old))
    assert is_settled(path)
    (folder / "a.dat").unlink()
    assert not is_settled(path), "the signal may still come"
    os.utime(folder / "a.hea", (old - 100, old - 100))
    assert is_settled(path), "it did not"
    header = (folder / "a.hea").read_text().replace("a.dat", "a" * 300 + ".dat")
    (folder / "a.hea").write_text(header)
    assert not is_settled(path), "a name that no file can have is that of a missing one"


def test_a_machine_that_sees_some_of_a_recordings_files_does_not_see_it(folder):
    (path,) = (path for path in discover_recordings([folder]) if path.name == "a.hea")
    assert exists(path)
    (folder / "a.dat").rename(folder / "a.away")
    assert not exists(path)
    (without,) = (path for path in discover_recordings([folder]) if path.name == "a.hea")
    assert exists(without), "what was never there is not missed"
    (folder / "a.hea").unlink()
    assert not exists(without)


def test_a_recording_in_an_archive_can_be_named(folder, zipped):
    archive = zipped(folder)
    for name in ("a", "a.hea", "in/a.hea", "b.npz"):
        (found,) = discover_recordings([archive / name])
        assert Path(found.tree) == archive and Path(found.name).stem == Path(name).stem
    (found,) = discover_recordings([archive / "nobody"])
    assert (
        isinstance(found, ReadFailure)
        and "expected one recording called nobody, found none of that name" in found.reason
    )


def test_a_folder_without_recordings_is_a_failure(tmp_path):
    (tmp_path / "notes.txt").write_text("no recording")
    (found,) = discover_recordings([tmp_path])
    assert isinstance(found, ReadFailure) and "found none" in found.reason
    everything = list_everything([tmp_path])
    assert everything.failures == [] and [Path(one.source).name for one in everything.skipped] == ["notes.txt"]


def test_every_file_is_accounted_for(folder):
    (folder / "empty.xyz").touch()
    (folder / "readme.txt").write_text("no recording")
    (folder / "labels.csv").write_text("id,label\n")
    (folder / "lost.dat").write_bytes(b"1234")
    (folder / "deep" / "inner.zip").write_bytes(b"1234")
    (folder / "nowhere").symlink_to(folder / "no such file")
    (folder / "linked").symlink_to(folder / "deep")
    os.mkfifo(folder / "pipe")
    found = list_everything([folder, folder / "a.hea", folder])
    assert names(found.recordings) == ["a.hea", "deep/b.npz"]
    reasons = {str(Path(one.source).relative_to(folder)): one.reason for one in found.skipped}
    assert reasons == {
        "empty.xyz": "an empty file",
        "readme.txt": "no known format (.txt)",
        "labels.csv": "a table of labels",
        "lost.dat": "a signal file that no WFDB header beside it names",
        "deep/inner.zip": "an archive within a folder or archive; give its own path",
        "nowhere": "not a file that can be opened",
        "linked": "a link to a folder, which is not followed",
        "pipe": "not a file that can be opened",
    }


def test_patterns_leave_files_out(folder):
    (folder / "readme.txt").write_text("no recording")
    for patterns, expected, n in ((["*.txt"], ["a.hea", "deep/b.npz"], 1), (["deep/*", "read*"], ["a.hea"], 2)):
        found = list_everything([folder, folder], patterns)
        assert names(found.recordings) == expected and found.skipped == [] and found.n_ignored == n


def test_files_in_an_archive_are_accounted_for(folder, zipped):
    (folder / "readme.txt").write_text("no recording")
    found = list_everything([zipped(folder)])
    assert names(found.recordings) == ["in/a.hea", "in/deep/b.npz"]
    assert [Path(one.source).name for one in found.skipped] == ["readme.txt"]


def test_files_of_one_name_in_an_archive_are_accounted_for(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("x.csv", "II (mV)\n1\n")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("x.csv", "II (mV)\n2\n")
    found = list_everything([tmp_path / "two.zip"])
    assert names(found.recordings) == ["x.csv"]
    assert [one.reason for one in found.skipped] == ["an earlier file of the same name in the archive"]


def test_a_folder_and_what_is_in_it_may_be_given(folder):
    (folder / "deep" / "notes.xyz").write_text("no recording")
    found = list_everything([folder, folder / "deep", folder / "deep" / "notes.xyz"], ["*.npz"])
    assert [Path(str(one)).name for one in found.recordings] == ["a.hea", "notes.xyz"], "what is given is read"
    assert not found.skipped and found.n_ignored == 1
    assert len(list_everything([folder, folder / "deep"]).recordings) == 2


def test_a_path_that_no_file_can_have_is_a_failure(folder):
    (folder / "loop").symlink_to(folder / "loop")
    found = list_everything([folder / "loop", "a\0b", folder / "a.hea"])
    assert len(found.failures) == 2 and names(found.recordings) == ["a.hea"]
    assert sum(isinstance(one, ReadFailure) for one in discover_recordings([folder / "loop", "a\0b"])) == 2


def test_a_header_in_capitals_has_its_signal_file(folder):
    (folder / "a.hea").rename(folder / "a.HEA")
    found = list_everything([folder])
    assert names(found.recordings) == ["a.HEA", "deep/b.npz"] and not found.skipped
    assert len(found.recordings[0].stamp.split()) == 2


@contextmanager
def without_privileges():
    """As a user who is not root, to whom permissions do not apply."""
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(65534)
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_without_permission_is_no_empty_folder(folder):
    with tempfile.TemporaryDirectory() as place:  # pytest's folders are for root alone
        shared = Path(place)
        shared.chmod(0o755)
        (shared / "in" / "closed").mkdir(parents=True)
        (shared / "in" / "a.npz").write_bytes((folder / "deep" / "b.npz").read_bytes())
        (shared / "in" / "closed").chmod(0)
        with without_privileges():
            outer, inner = list_everything([shared / "in"]), list_everything([shared / "in" / "closed"])
        (shared / "in" / "closed").chmod(0o755)
    assert names(outer.recordings) == ["a.npz"] and [one.reason for one in outer.skipped] == [
        "the folder cannot be listed: Permission denied"
    ]
    (failure,) = inner.failures
    assert failure.reason.endswith("the folder cannot be listed: Permission denied")
