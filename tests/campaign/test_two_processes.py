"""Two processes write to one output at the same time: one is refused in one line, or both end with a sound result."""

import pytest

from ecgquorum import Cohort, load_ensemble, simulate
from ecgquorum.recordings import write

from ..commands import Command
from ..conftest import TINY_RECIPE
from ..training.test_run_folder import arguments, untimed, weights
from ..triage.test_triage import triage_command
from ..triage.worklists import assert_same_worklist, read_worklist

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run_both(command, finished=(0,)):
    """Run the command twice at once; at least one ends well, the other one too or with one line."""
    both = [Command(*command, threads=1) for _ in range(2)]
    codes = [one.wait(900) for one in both]
    said = [one.stderr for one in both]
    assert any(code in finished for code in codes), said
    for code, text in zip(codes, said, strict=True):
        assert code in (*finished, 1, 2) and "Traceback" not in text, (code, text)
        assert code in finished or text.count("error:") == 1, text


def test_two_trainings(tiny_cohort, tmp_path, ecgquorum, one_thread, record_property):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(TINY_RECIPE.replace("epochs = 2", "epochs = 4"))
    ecgquorum(*arguments(recipe, tiny_cohort, tmp_path / "whole"))
    for number in range(3):
        out = tmp_path / f"run{number}"
        run_both(arguments(recipe, tiny_cohort, out))
        assert weights(out) == weights(tmp_path / "whole") and untimed(out) == untimed(tmp_path / "whole")
        load_ensemble(out)
    record_property("done", 3)


def test_two_triages(tiny_run, tmp_path, ecgquorum, record_property):
    place = tmp_path / "in"
    place.mkdir()
    for number in range(40):
        write(simulate("NAO"[number % 3], seed=number, leads=("ECG",), seconds=6).recording, place / f"{number}.npz")
    ecgquorum(*triage_command(place, tiny_run, tmp_path / "whole"))
    for number in range(3):
        out = tmp_path / f"out{number}"
        run_both(triage_command(place, tiny_run, out))
        assert_same_worklist(read_worklist(out), read_worklist(tmp_path / "whole"), load_ensemble(tiny_run))
    record_property("done", 3)


def test_two_cohorts(tmp_path, record_property):
    for number in range(3):
        out = tmp_path / f"cohort{number}"
        run_both(["cohort", "build", "synthetic:physionet2017", "--records", "40", "--seconds", "5", "--out", out])
        assert len(Cohort(out).labels) == 40
        assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")] == []
    record_property("done", 3)
