"""Commands that need no network do not import one, nor anything else that is slow to import."""

import subprocess
import sys

import pytest

from ecgquorum import simulate, write
from tests.conftest import REPOSITORY

HEAVY = ("torch", "ray", "optuna", "fastapi", "sqlalchemy", "scipy.signal", "ecgquorum.recipes.training")
PRINT_HEAVY = f"""
import sys
from ecgquorum.cli import main
try:
    main()
finally:
    print("imported:", *(name for name in {HEAVY} if name in sys.modules))
"""


@pytest.fixture
def imported(tmp_path):
    """The heavy packages that a command imports."""

    def run(*arguments, code=0):
        command = [sys.executable, "-c", PRINT_HEAVY, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return set(done.stdout.splitlines()[-1].split()[1:])

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["train", "--help"],
        ["simulate", "N", "--out", "n.csv", "--seconds", "2"],
        ["convert", "sample:af", "af.edf"],
        ["plot", "sample:af"],
        ["plot", "sample:lbbb", "--out", "lbbb.pdf"],
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_imported(imported, arguments):
    assert imported(*arguments) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "missing.hea"],
        ["predict", "missing.hea", "gone/", "--json"],
        ["predict", "sample:none"],
        ["plot", "missing.hea"],
        ["cohort", "info", "nowhere"],
    ],
    ids=" ".join,
)
def test_missing_files_import_nothing_heavy(imported, arguments):
    assert imported(*arguments, code=1) == set()


def test_a_card_is_shown_without_pytorch(imported):
    assert imported("card", "physionet2017") == {"ecgquorum.recipes.training"}
    assert imported("card", "nowhere", code=1) == {"ecgquorum.recipes.training"}


def test_a_cohort_is_shown_without_pytorch(imported, tiny_cohort):
    assert imported("cohort", "info", tiny_cohort.path) == set()


def test_imports_of_pytorch_are_detected(imported, tmp_path):
    write(simulate("N", seed=1, seconds=4, leads=("ECG",)).recording, tmp_path / "n.hea")
    assert imported("predict", "n.hea") == {"torch"}


def test_importing_the_package_imports_none_of_its_parts():
    code = "import sys, ecgquorum; print({'numpy', 'torch'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout == "set()\n"


def test_the_package_runs_as_a_module(tmp_path):
    command = [sys.executable, "-m", "ecgquorum", "predict", "missing.hea"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: ") and "missing.hea" in done.stderr and done.stderr.count("\n") == 1
