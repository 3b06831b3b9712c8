"""Ray Train starts the ranks: they train as one process does."""

import importlib.util
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ecgquorum.cli import app
from ecgquorum.errors import ClusterError, TrainingError
from ecgquorum.parallel.ray_train import run_on_ranks

from ..conftest import REPOSITORY
from .rank_runs import arguments, assert_same_run

needs_ray_train = pytest.mark.skipif(
    not (importlib.util.find_spec("ray") and importlib.util.find_spec("pyarrow")),
    reason="Ray Train is not installed: pip install ecgquorum[cluster]",
)


def check_run(name, said, alone, cohort):
    out = alone.parent / name
    assert [line[:19] for line in said.splitlines() if line.startswith("member ")] == [
        f"member {member}  epoch   {epoch}" for member in (0, 1) for epoch in (1, 2, 3)
    ]
    assert_same_run(out, alone, cohort)
    assert json.loads((out / "card.json").read_text())["ranks"] == 2
    assert not (out / "ray.partial").exists()
    again = CliRunner().invoke(app, arguments(out.parent, cohort, name, "--ranks", "2"))
    assert isinstance(again.exception, TrainingError) and "there is a run already" in str(again.exception)


@pytest.mark.long
@needs_ray_train
def test_ranks_on_this_machine_train_as_one_process_does(alone, cohort):
    """In a process of its own, which starts a cluster of its own."""
    command = [sys.executable, "-m", "ecgquorum", *arguments(alone.parent, cohort, "here", "--ranks", "2")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=REPOSITORY, timeout=280)
    assert done.returncode == 0, done.stderr
    check_run("here", done.stderr, alone, cohort)


@pytest.mark.parametrize("missing", ["ray", "pyarrow"])
def test_without_ray_train_one_line_says_what_to_install(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ClusterError, match=rf'Ray Train needs .*{missing}.*"ecgquorum\[cluster\]"'):
        run_on_ranks(print, (), 2, scratch=tmp_path / "ray.partial")
