"""kill -9 at random moments of a training and of a triage: the next start ends as if nothing had happened."""

import functools
import time

import numpy as np
import pytest

from ecgquorum import Recording, load_ensemble, simulate
from ecgquorum.recordings import write

from ..commands import Command
from ..conftest import TINY_RECIPE
from ..training.test_run_folder import arguments, untimed, weights
from ..triage.test_triage import answers_in, triage_command
from ..triage.worklists import assert_same_worklist, read_worklist

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


def kill_until_it_ends(command, progress, rng, count, code, largest_step):
    """Start it and kill it after a random amount of progress, again and again; it ends by itself at last.

    command:  arguments of the next start
    progress: how far the output is, a number that grows
    Gives the number of kills that left a part of the output.
    """
    midway = 0
    while True:
        running = Command(*command(), new_session=True, threads=1)
        wanted = progress() + int(rng.integers(0, largest_step + 1))
        if count.goes_on:
            while running.poll() is None and progress() < wanted:
                time.sleep(0.002)
            time.sleep(float(rng.uniform(0, 0.3)))
        else:
            running.wait(1200)
        if running.poll() is not None:
            assert running.wait() == code, running.stderr
            return midway
        running.kill()
        count.add()
        midway += progress() > 0


def test_a_training_that_is_killed_has_the_same_bits_in_the_end(tiny_cohort, tmp_path, count, ecgquorum, one_thread):
    kills = count("KILLS_TRAINING", 3)
    rng = np.random.default_rng([1, kills.seed])
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(TINY_RECIPE.replace("epochs = 2", "epochs = 6"))
    ecgquorum(*arguments(recipe, tiny_cohort, tmp_path / "whole"))
    runs = midway = 0
    while kills.goes_on:
        out = tmp_path / f"run{runs}"

        def command(out=out):
            started = (out / "recipe.toml").exists()
            return arguments(recipe, tiny_cohort, out, *(["--resume"] if started else []))

        def epochs(out=out):
            return len((out / "history.csv").read_text().splitlines()) if (out / "history.csv").exists() else 0

        midway += kill_until_it_ends(command, epochs, rng, kills, 0, largest_step=2)
        assert weights(out) == weights(tmp_path / "whole"), "bit-identical"
        assert untimed(out) == untimed(tmp_path / "whole")
        runs += 1
    kills.finish(runs=runs, midway=midway)


def test_a_triage_that_is_killed_has_the_same_worklist_in_the_end(tiny_run, tmp_path, count):
    kills = count("KILLS_TRIAGE", 3)
    rng = np.random.default_rng([2, kills.seed])
    place = tmp_path / "in"
    place.mkdir()
    made = [simulate("NAO"[k % 3], seed=k, leads=("ECG",), seconds=6).recording for k in range(50)]
    for number in range(600):  # results are stored about a hundred at a time
        one = made[number % 50]
        signal = (one.signal * (1 + number / 6000)).astype(np.float32)
        write(Recording("made", signal, one.rate_hz, one.leads), place / f"s{number:03d}.npz")
    assert Command(*triage_command(place, tiny_run, tmp_path / "whole")).wait(1200) == 0
    expected, ensemble = read_worklist(tmp_path / "whole"), load_ensemble(tiny_run)
    runs = midway = 0
    while kills.goes_on:
        out = tmp_path / f"out{runs}"
        command = triage_command(place, tiny_run, out)
        stored = functools.partial(answers_in, out)
        midway += kill_until_it_ends(lambda c=command: c, stored, rng, kills, 0, largest_step=150)
        rows = read_worklist(out)
        assert len(rows) == 600 == len({row["source"] for row in rows})
        assert_same_worklist(rows, expected, ensemble)
        runs += 1
    kills.finish(runs=runs, midway=midway)
