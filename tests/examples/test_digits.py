"""The method on images: the example runs and prints its table."""

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.long
def test_the_digits_example_prints_a_table_of_four_ensembles():
    command = [sys.executable, REPOSITORY / "examples" / "digits" / "digits.py", "--epochs", "1"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[1:] if line}
    for name in ("baseline", "dec", "part", "dec+part"):
        clean, first, whole = map(float, rows[name][:3])
        assert clean > 60 and whole < clean and first < clean
