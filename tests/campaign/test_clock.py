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

COMPILER = shutil.which("cc") or shutil.which("gcc")
JUMPS_H = (-30, +5, -0.01, +24 * 400, -2)

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler for a clock that jumps")


def test_a_file_from_the_future_is_not_waited_for(tmp_path):
    write(simulate("N", seed=1, leads=("ECG",), seconds=3).recording, tmp_path / "one.npz")
    (path,) = discover_recordings([tmp_path])
    assert not is_settled(path), "it has just been written"
    later = time.time() + 5 * 3600
    os.utime(tmp_path / "one.npz", (later, later))
    assert is_settled(path)


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    """A library that puts a jumping wall clock into a command.

    Not libfaketime, under which a training of 5 s did not end in 150 s.
    """
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).with_name("jumping_clock.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def run_with_jumps(library, command, folder):
    """Run the command and all that it starts, while the clock jumps five times a second; gives the number of jumps."""
    offset, printed, jumps = folder / "offset", folder / "printed", 0
    offset.write_bytes(bytes(8))
    environment = os.environ | {"LD_PRELOAD": str(library), "JUMPING_CLOCK_OFFSET": str(offset), "OMP_NUM_THREADS": "1"}
    shown = [sys.executable, "-c", "import time; print(time.time())"]
    line = [sys.executable, "-m", "ecgquorum", *map(str, command)]
    with printed.open("w") as output, offset.open("r+b", buffering=0) as file:
        file.write((10**6).to_bytes(8, sys.byteorder))
        now = float(subprocess.run(shown, env=environment, capture_output=True, check=True).stdout)
        assert now - time.time() == pytest.approx(10**6, abs=600), "the clock is that of the file"
        process = subprocess.Popen(line, env=environment, stdout=output, stderr=subprocess.STDOUT)
        while process.poll() is None:
            file.seek(0)
            file.write(round(JUMPS_H[jumps % len(JUMPS_H)] * 3600).to_bytes(8, sys.byteorder, signed=True))
            jumps += 1
            time.sleep(0.2)
    said = printed.read_text()
    assert process.returncode == 0 and "Traceback" not in said, said
    assert not re.search(r"-\d+(\.\d+)? s\b", said), "no negative duration"
    return jumps


@pytest.mark.slow
@pytest.mark.timeout(1800)
@needs_compiler
def test_a_training_does_not_mind_a_clock_that_jumps(
    clock, tiny_cohort, tmp_path, ecgquorum, one_thread, record_property
):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(TINY_RECIPE)
    ecgquorum(*arguments(recipe, tiny_cohort, tmp_path / "whole"))
    jumps = run_with_jumps(clock, arguments(recipe, tiny_cohort, tmp_path / "run"), tmp_path)
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert untimed(tmp_path / "run") == untimed(tmp_path / "whole")
    record_property("jumps", jumps)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@needs_compiler
def test_a_triage_does_not_mind_a_clock_that_jumps(clock, tiny_run, tmp_path, ecgquorum, record_property):
    place = tmp_path / "in"
    place.mkdir()
    for number in range(40):
        write(simulate("NAO"[number % 3], seed=number, leads=("ECG",), seconds=6).recording, place / f"{number}.npz")
    ecgquorum(*triage_command(place, tiny_run, tmp_path / "whole"))
    jumps = run_with_jumps(clock, triage_command(place, tiny_run, tmp_path / "out"), tmp_path)
    assert_same_worklist(read_worklist(tmp_path / "out"), read_worklist(tmp_path / "whole"), load_ensemble(tiny_run))
    record_property("jumps", jumps)
