"""Large inputs: a recording of a day, and a folder of thousands of recordings."""

import json
import os
import resource

import numpy as np
import pytest

from ecgquorum import Recording, simulate
from ecgquorum.recordings import write

from ..triage.worklists import read_worklist

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


def test_a_recording_of_a_day_is_triaged(tiny_run, tmp_path, ecgquorum, record_property):
    hours = float(os.environ.get("ECGQUORUM_HOURS", "1"))
    minute = simulate("N", seed=1, leads=("ECG",), seconds=60, rate_hz=250.0).recording
    fibrillation = simulate("A", seed=2, leads=("ECG",), seconds=60, rate_hz=250.0).recording
    minutes = [fibrillation if number % 60 == 30 else minute for number in range(round(hours * 60))]
    signal = np.concatenate([one.signal for one in minutes], axis=1)
    (tmp_path / "in").mkdir()
    write(Recording("day", signal, 250.0, ("ECG",)), tmp_path / "in" / "day.hea")
    command = ["triage", tmp_path / "in", "--model", tiny_run, "--budget", "50%", "--out", tmp_path / "out"]
    summary = json.loads(ecgquorum(*command, "--json").stdout)
    assert summary["unreadable"] == 0
    (row,) = read_worklist(tmp_path / "out")
    starts = [window["start_s"] for window in row["windows"]]
    assert starts == sorted(starts) and starts[0] == 0
    assert starts[-1] + row["windows"][-1]["seconds"] == pytest.approx(hours * 3600, abs=1)
    record_property("done", hours)
    record_property("windows", len(starts))


def test_a_folder_of_thousands_is_triaged(tiny_run, tmp_path, ecgquorum, record_property):
    number = int(os.environ.get("ECGQUORUM_RECORDINGS", "300"))
    made = [simulate("NAO"[k % 3], seed=k, leads=("ECG",), seconds=6).recording for k in range(50)]
    folder = tmp_path / "in"
    folder.mkdir()
    for k in range(number):
        one = made[k % 50]
        signal = (one.signal * (1 + k / number / 10)).astype(np.float32)
        (folder / f"{k // 1000:02d}").mkdir(exist_ok=True)
        write(Recording("made", signal, one.rate_hz, one.leads), folder / f"{k // 1000:02d}" / f"s{k:05d}.npz")
    command = ["triage", folder, "--model", tiny_run, "--budget", "10%", "--plots", "0", "--out", tmp_path / "out"]
    summary = json.loads(ecgquorum(*command, "--json").stdout)
    rows = read_worklist(tmp_path / "out")
    assert summary["files"] == number == len(rows) == len({row["source"] for row in rows})
    assert all(row["decision"] in ("deferred", "certain") for row in rows)
    record_property("done", number)
    record_property("peak_mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
