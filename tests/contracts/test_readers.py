"""The contract of registered readers, and which of several readers reads a file."""

import inspect

import numpy as np
import pytest

from ecgquorum import Recording, read
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import READERS, OpenedFile, reader, readers
from ecgquorum.recordings.file_defaults import NO_DEFAULTS
from ecgquorum.recordings.filetree import Folder
from ecgquorum.recordings.readers import claimed_suffixes, recording_names
from ecgquorum.recordings.sandbox import Work


@pytest.mark.parametrize("name", READERS.names())
def test_a_reader_claims_suffixes_and_refuses_junk_in_one_line(name, tmp_path):
    one = READERS.get(name)
    assert (one.suffixes or one.any_suffix) and all(
        suffix.startswith(".") and suffix == suffix.lower() for suffix in one.suffixes
    )
    assert len(inspect.signature(one).parameters) == 2
    assert not one.any_suffix or one.recognise is not None
    Work.prepare(one)  # worker processes import it by name
    for number, content in enumerate((b"", b"junk", b"\0" * 4096, bytes(range(256)) * 8)):
        path = tmp_path / f"r{number}{(*one.suffixes, '.x')[0]}"
        path.write_bytes(content)
        assert one.recognise is None or not one.recognise(content)
        with pytest.raises(RecordingError, match=path.name) as caught:
            one(OpenedFile(Folder(tmp_path), path.name), NO_DEFAULTS)
        assert "\n" not in str(caught.value)


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(READERS, "_registered", {})
    readers._readers_by_suffix.cache_clear()
    yield READERS
    readers._readers_by_suffix.cache_clear()


def flat(value):
    return lambda file, _: Recording(file.stem, np.full(100, value), 100.0, ("ECG",), source=file.path)


def test_of_several_readers_the_one_that_recognises_the_file_reads_it(registry, tmp_path):
    registry.register("watch", reader(".csv", recognise=lambda head: head.startswith(b"Watch"))(flat(0.1)))
    (tmp_path / "w.csv").write_text("Watch\n1\n2\n")
    (tmp_path / "t.csv").write_text("time (s),II (mV)\n0,1\n0.004,2\n")
    assert read(tmp_path / "w.csv", as_stated=True).signal[0, 0] == np.float32(0.1)
    assert read(tmp_path / "t.csv", as_stated=True).leads == ("II",)


def test_a_new_suffix_is_found_in_folders(registry, tmp_path):
    (tmp_path / "one.ABC").write_text("x")
    assert recording_names(Folder(tmp_path)) == []
    registry.register("abc", reader(".abc")(flat(0.1)))
    assert ".abc" in claimed_suffixes() and recording_names(Folder(tmp_path)) == ["one.ABC"]
    assert read(tmp_path / "one.ABC").id == "one"


def test_files_of_any_suffix_are_recognised_by_their_content(registry, tmp_path):
    registry.register("abc", reader(".abc", recognise=lambda head: head[:3] == b"ABC", any_suffix=True)(flat(0.1)))
    for name, content in (("one.001", "ABC"), ("two", "ABC"), ("three.txt", "other")):
        (tmp_path / name).write_text(content)
    assert recording_names(Folder(tmp_path)) == ["one.001", "two"]


def test_a_broken_reader_of_another_package_is_a_warning(registry, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("time (s),II (mV)\n0,1\n0.004,2\n")
    monkeypatch.setattr(registry, "builtin", registry.builtin | {"broken": "no_such_package:read"})
    with pytest.warns(UserWarning, match="reader 'no_such_package:read' cannot be imported"):
        assert read(tmp_path / "t.csv", as_stated=True).leads == ("II",)
