"""Readers apart: whatever a file, or the machine, does to one of them costs at most that file."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ecgquorum import simulate
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recordings import sandbox, write
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath
from ecgquorum.recordings.sandbox import PreparedRecording, Readers, ReadOptions, read_sandboxed

WANTED = ReadOptions(InputSpec(("ECG",), 300.0, "microvolt", 10.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("in")
    for number in range(3):
        write(simulate("N", seed=number, leads=("ECG",), seconds=6).recording, place / f"r{number}.npz")
    return place


def kinds(found):
    return [type(one) for one in found]


def test_a_file_that_hangs_costs_only_itself(folder, tmp_path):
    os.mkfifo(tmp_path / "hang.csv")  # whoever opens it waits for ever
    places = [
        RecordingPath(str(folder), "r0.npz"),
        RecordingPath(str(tmp_path), "hang.csv"),
        RecordingPath(str(folder), "r1.npz"),
    ]
    started = time.monotonic()
    assert kinds(read_sandboxed(places, WANTED, n_readers=1, patience_s=3.0)) == [
        PreparedRecording,
        ReadFailure,
        PreparedRecording,
    ]
    assert time.monotonic() - started < 100


def test_a_reader_that_is_killed_costs_its_file_or_nothing(folder, monkeypatch):
    places = [RecordingPath(str(folder), f"r{i}.npz") for i in range(3)]
    give = sandbox._Reader.give

    def killed_at_work(self, number, place):
        give(self, number, place)
        if number == 1:
            os.kill(self._process.pid, signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(sandbox._Reader, "give", killed_at_work)
        found = list(read_sandboxed(places, WANTED, n_readers=1))
    assert (
        kinds(found) == [PreparedRecording, ReadFailure, PreparedRecording] and "crashes its reader" in found[1].reason
    )
    with Readers(WANTED, n_readers=1) as readers:
        assert kinds(readers.outcomes(places[:1])) == [PreparedRecording]
        (reader,) = readers._readers
        os.kill(reader._process.pid, signal.SIGKILL)  # while it has nothing to do
        reader._process.join()
        assert kinds(readers.outcomes(places)) == [PreparedRecording] * 3


def test_the_time_that_a_reader_takes_to_begin_is_not_its_files(folder, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(6)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    (one,) = read_sandboxed([RecordingPath(str(folder), "r0.npz")], WANTED, n_readers=1, patience_s=5.0)
    assert isinstance(one, PreparedRecording)


def test_a_file_that_wants_too_much_memory_costs_only_itself(folder, tmp_path):
    np.savez_compressed(
        tmp_path / "large.npz", signal=np.zeros((1, 30 << 20)), rate_hz=500.0, leads=["ECG"], units="mV"
    )
    places = [RecordingPath(str(tmp_path), "large.npz"), RecordingPath(str(folder), "r0.npz")]
    large, sound = read_sandboxed(places, WANTED, n_readers=1, memory_bytes=200 << 20)
    assert isinstance(large, ReadFailure) and "memory" in large.reason and len(large.sha256) == 64
    assert isinstance(sound, PreparedRecording)


def test_readers_do_not_load_what_they_do_not_need():
    """They are started by the dozen, and begin again after every file that kills one."""
    code = "import sys, ecgquorum.recordings.sandbox; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
