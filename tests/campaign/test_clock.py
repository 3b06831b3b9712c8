"""The clock jumps by hours while commands run: nothing waits for it, and results are the same."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ecgquorum import load_ensemble, simulate
from ecgquorum.recordings import write
from ecgquorum.recordings.discovery import discover_recordings, is_settled

from ..conftest import TINY_RECIPE
from ..training.test_run_folder import arguments, untimed, weights
from ..triage.test_triage import triage_command
from ..triage.worklists import assert_same_worklist, read_worklist

LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
JUMPS_H = (-30, +5, -0.01, +24 * 400, -2)

needs_faketime = pytest.mark.skipif(LIBRARY is None, reason="no libfaketime (Debian: apt-get install faketime)")


def test_a_file_from_the_future_is_not_waited_for(tmp_path):
    write(simulate("N", seed=1, leads=("ECG",), seconds=3).recording, tmp_path / "one.npz")
    (path,) = discover_recordings([tmp_path])
    assert not is_settled(path), "it has just been written"
    later = time.time() + 5 * 3600
    os.utime(tmp_path / "one.npz", (later, later))
    assert is_settled(path)


def run_with_jumps(command, folder):
    """Run the command while its clock jumps; the command sees the offset that a file holds."""
    offset = folder / "offset"
    offset.write_text("+0")
    environment = os.environ | {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_CACHE_DURATION": "1",  # seconds; without a cache every look at the clock opens the file
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "OMP_NUM_THREADS": "1",
    }
    line = [sys.executable, "-m", "ecgquorum", *map(str, command)]
    jumps, printed = 0, folder / "printed"
    with printed.open("w") as file:
        process = subprocess.Popen(line, env=environment, stdout=file, stderr=subprocess.STDOUT)
    while process.poll() is None:
        time.sleep(1.0)
        hours = JUMPS_H[jumps % len(JUMPS_H)]
        scratch = folder / "next"
        scratch.write_text(f"{hours * 3600:+.0f}")
        scratch.replace(offset)
        jumps += 1
    return process.returncode, printed.read_text(), jumps


@pytest.mark.slow
@needs_faketime
def test_a_training_does_not_mind_a_clock_that_jumps(tiny_cohort, tmp_path, count, ecgquorum, one_thread):
    clock = count("CLOCK", 1)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(TINY_RECIPE)
    ecgquorum(*arguments(recipe, tiny_cohort, tmp_path / "whole"))
    code, printed, jumps = run_with_jumps(arguments(recipe, tiny_cohort, tmp_path / "run"), tmp_path)
    assert code == 0, printed
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert untimed(tmp_path / "run") == untimed(tmp_path / "whole")
    assert not re.search(r"-\d+(\.\d+)? s\b", printed), "no negative duration"
    clock.add(jumps)
    clock.finish()


@pytest.mark.slow
@needs_faketime
def test_a_triage_does_not_mind_a_clock_that_jumps(tiny_run, tmp_path, count, ecgquorum):
    clock = count("CLOCK", 1)
    place = tmp_path / "in"
    place.mkdir()
    for number in range(40):
        write(simulate("NAO"[number % 3], seed=number, leads=("ECG",), seconds=6).recording, place / f"{number}.npz")
    ecgquorum(*triage_command(place, tiny_run, tmp_path / "whole"))
    code, printed, jumps = run_with_jumps(triage_command(place, tiny_run, tmp_path / "out"), tmp_path)
    assert code == 0, printed
    assert_same_worklist(read_worklist(tmp_path / "out"), read_worklist(tmp_path / "whole"), load_ensemble(tiny_run))
    shutil.rmtree(place)
    clock.add(jumps)
    clock.finish()
