"""The sandbox: a crash, hang or memory overrun of a reader costs one file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ecgquorum import read, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.parallel import worker_process
from ecgquorum.preprocessing import InputSpec, PreparedRecording, ReadOptions, read_recordings
from ecgquorum.preprocessing.prepare import reading_sandbox
from ecgquorum.recordings import READERS, ReadFailure, RecordingPath, SandboxLimits, reader, write
from ecgquorum.recordings.sandbox import Sandbox

pytestmark = [
    pytest.mark.long,  # they wait for the ends of time limits
    pytest.mark.usefixtures("spawned_workers"),
]
OPTIONS = ReadOptions(InputSpec(("ECG",), 300.0, "microvolt", 10.0))
ONE = SandboxLimits(n_workers=1, seconds=60.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("in")
    for number in range(3):
        write(simulate("N", seed=number, leads=("ECG",), seconds=6).recording, place / f"r{number}.npz")
    return place


@pytest.fixture
def paths(folder):
    return [RecordingPath(str(folder), f"r{i}.npz") for i in range(3)]


def kinds(found):
    return [type(one) for one in found]


def misbehave(path):
    """A reader whose behaviour is in the file's name."""
    if "crash" in path.name:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "exit" in path.name:
        os._exit(3)
    if "hang" in path.name:
        time.sleep(1000)
    if "memory" in path.name:
        bytearray(4 << 30)
    if "raise" in path.name:
        raise ValueError("two\nlines")
    if "large" in path.name:
        return np.zeros(8 << 20)
    return path.name


def test_each_failure_costs_its_own_file_and_is_attributed_to_it():
    """Large results between crashes: a pool whose workers share one pipe would blame the neighbours."""
    names = ["a", "crash1", "large1", "b", "hang", "memory", "large2", "raise", "exit", "crash2", "c", "large3"]
    limits = SandboxLimits(n_workers=2, seconds=5.0, memory_bytes=1 << 30)
    with Sandbox(misbehave, (), limits) as sandbox:
        found = dict(zip(names, sandbox.run(RecordingPath("in", name) for name in names), strict=True))
    reasons = {name: one.reason for name, one in found.items() if isinstance(one, ReadFailure)}
    assert reasons == {
        "crash1": "in/crash1: reader process crashed (signal 11); file skipped",
        "crash2": "in/crash2: reader process crashed (signal 11); file skipped",
        "exit": "in/exit: reader process crashed (exit code 3); file skipped",
        "hang": "in/hang: not read within 5 s; file skipped",
        "memory": "in/memory: needs more memory than a reader may use; file skipped",
        "raise": "in/raise: cannot be read: ValueError: two lines",
    }
    assert [found[name] for name in "abc"] == ["a", "b", "c"]


def wait_or_spin(path):
    end = time.process_time() + 1000
    while "spin" in path.name and time.process_time() < end:
        pass
    time.sleep(2.0)
    return path.name


def test_time_for_which_a_reader_waits_for_a_processor_is_not_counted(monkeypatch):
    limits, path = SandboxLimits(1, seconds=0.5), RecordingPath("in", "wait")
    with Sandbox(wait_or_spin, (), limits) as sandbox:
        (found,) = sandbox.run([path])
        assert isinstance(found, ReadFailure), "a process that sleeps does not wait for a processor"
        (found,) = sandbox.run([RecordingPath("in", "spin")])
        assert found.reason == "in/spin: not read within 0.5 s; file skipped", "it used its time"
        monkeypatch.setattr(worker_process, "processor_time", lambda _: ("R", 0.0))
        assert list(sandbox.run([path])) == ["wait"]


def test_workers_survive_an_idle_kill_and_an_early_stop(paths):
    with reading_sandbox(OPTIONS, ONE) as sandbox:
        assert kinds(sandbox.run(paths[:1])) == [PreparedRecording]
        (pid,) = sandbox.pids
        os.kill(pid, signal.SIGKILL)
        state, threads = Path(f"/proc/{pid}/stat"), Path(f"/proc/{pid}/task")
        while state.read_text().rpartition(")")[2].split()[0] != "Z" or len(list(threads.iterdir())) > 1:
            time.sleep(0.01)  # its pipe is closed when its last thread has ended
        assert kinds(sandbox.run(paths)) == [PreparedRecording] * 3
        outcomes = sandbox.run(paths)
        next(outcomes)
        outcomes.close()
        assert [one.id for one in sandbox.run(paths[1:])] == ["r1", "r2"]
        pids = sandbox.pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_file_that_blocks_its_reader_costs_only_itself(folder, tmp_path):
    os.mkfifo(tmp_path / "hang.csv")  # opening it blocks for ever
    paths = [folder / "r0.npz", RecordingPath(str(tmp_path), "hang.csv"), folder / "r1.npz"]
    found = list(read_recordings(paths, OPTIONS, limits=SandboxLimits(1, seconds=3.0)))
    assert kinds(found) == [PreparedRecording, ReadFailure, PreparedRecording]


def test_the_start_of_a_worker_is_not_counted_as_reading_time(folder, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(6)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    (one,) = read_recordings([folder / "r0.npz"], OPTIONS, limits=SandboxLimits(1, seconds=5.0))
    assert isinstance(one, PreparedRecording)


def test_a_file_that_needs_too_much_memory_costs_only_itself(folder, tmp_path):
    np.savez_compressed(
        tmp_path / "large.npz", signal=np.zeros((1, 30 << 20)), rate_hz=500.0, leads=["ECG"], units="mV"
    )
    limits = SandboxLimits(1, seconds=60.0, memory_bytes=200 << 20)
    large, sound = read_recordings([tmp_path / "large.npz", folder / "r0.npz"], OPTIONS, limits=limits)
    assert isinstance(large, ReadFailure) and "memory" in large.reason and len(large.sha256) == 64
    assert isinstance(sound, PreparedRecording)


def test_the_sandbox_and_this_process_read_the_same(folder):
    for apart, here in zip(
        read_recordings([folder], OPTIONS, limits=ONE), read_recordings([folder], OPTIONS, sandbox=False), strict=True
    ):
        np.testing.assert_array_equal(apart.signal, here.signal)
        assert (apart.id, apart.sha256, apart.quality, apart.preview) == (
            here.id,
            here.sha256,
            here.quality,
            here.preview,
        )
    np.testing.assert_array_equal(read(folder / "r0.npz").signal, read(folder / "r0.npz", sandbox=True).signal)


def test_a_failure_of_one_recording_in_the_sandbox_is_raised(tmp_path):
    (tmp_path / "junk.edf").write_bytes(b"junk" * 100)
    with pytest.raises(RecordingError, match="junk.edf"):
        read(tmp_path / "junk.edf", sandbox=True)


@reader(".lines")
def read_lines(file, defaults):
    from ecgquorum import Recording

    samples = [float(line) for line in file.read().split()]
    return Recording(file.stem, np.array(samples), defaults.rate(file.path, 250.0), ("ECG",), source=file.path)


def test_workers_know_the_readers_that_were_registered(tmp_path, monkeypatch):
    monkeypatch.setattr(READERS, "_registered", {})
    READERS.register("lines", read_lines)
    (tmp_path / "one.lines").write_text("\n".join(map(str, np.sin(np.arange(2500) / 20))))
    (one,) = read_recordings([tmp_path], limits=ONE)
    assert (one.id, one.recording.rate_hz, one.recording.n_samples) == ("one", 250.0, 2500)


def test_readers_do_not_load_what_they_do_not_need():
    """Workers are started often, so they must start fast."""
    code = "import sys, ecgquorum.preprocessing.prepare; print({'torch', 'scipy', 'wfdb'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
