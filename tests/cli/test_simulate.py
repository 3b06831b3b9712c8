"""`ecgquorum simulate`, `convert`, and the samples that ship."""

import os
import resource
import subprocess
import sys

import numpy as np
import pytest

from ecgquorum import read, simulate


@pytest.mark.parametrize("name", ["a.hea", "a.edf", "a.csv", "a.npz"])
def test_a_simulated_recording_is_written_and_read_again(ecgquorum, tmp_path, name):
    options = ("--seed", 4, "--seconds", 6, "--rate", 250, "--leads", "I,V1", "--noise", 0.5)
    said = ecgquorum("simulate", "AF", "--out", tmp_path / name, *options).stdout
    assert f"{name}: I, V1, 6.0 s at 250 Hz" in said
    found = read(tmp_path / name)
    expected = simulate("AF", seed=4, seconds=6, rate_hz=250, leads=("I", "V1"), noise=0.5).recording
    assert (found.leads, found.rate_hz) == (expected.leads, expected.rate_hz)
    np.testing.assert_allclose(found.signal, expected.signal, atol=2e-3)


def test_a_simulated_recording_has_twelve_leads_by_default(ecgquorum, tmp_path):
    ecgquorum("simulate", "PVC", "--out", tmp_path / "a.npz", "--seconds", 2)
    assert len(read(tmp_path / "a.npz").leads) == 12


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["X", "--out", "a.hea"], "found 'X'"),
        (["N", "--out", "a.hea", "--leads", "V9"], "V9"),
        (["N", "--out", "a.pdf"], "ends in .hea, .edf, .csv, .npz"),
        (["N", "--out", "nowhere/a b.hea"], "a b"),
    ],
)
def test_a_wrong_simulation_is_a_one_line_error_and_writes_nothing(ecgquorum, tmp_path, monkeypatch, arguments, reason):
    monkeypatch.chdir(tmp_path)
    said = ecgquorum("simulate", *arguments, code=1).stderr
    assert reason in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [["--seconds", 0], ["--rate", 1e9], ["--noise", -1], ["--seed", -1]], ids=str)
def test_options_out_of_range_are_refused(ecgquorum, tmp_path, options):
    ecgquorum("simulate", "N", "--out", tmp_path / "a.hea", *options, code=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.npz", "a.hea"])
def test_no_file_is_replaced_unless_forced(ecgquorum, tmp_path, name):
    target = tmp_path / name
    write = ("simulate", "N", "--out", target, "--seconds", 2)
    ecgquorum(*write)
    before = target.read_bytes()
    for command in (write, ("convert", "sample:af", target), ("plot", "sample:af", "--out", tmp_path / "a.png")):
        if command[0] == "plot":
            ecgquorum(*command)
        said = ecgquorum(*command, code=1).stderr
        assert "exists" in said and "--force" in said and said.count("\n") == 1
    assert target.read_bytes() == before
    ecgquorum("convert", "sample:af", target, "--force")
    assert read(target).n_samples == read("sample:af").n_samples
    ecgquorum("plot", "sample:af", "--out", tmp_path / "a.png", "--force")


def test_the_signal_file_of_a_header_is_not_replaced_either(ecgquorum, tmp_path):
    (tmp_path / "a.dat").write_bytes(b"mine")
    assert "a.dat" in ecgquorum("simulate", "N", "--out", tmp_path / "a.hea", code=1).stderr
    assert (tmp_path / "a.dat").read_bytes() == b"mine"


def test_the_error_of_a_full_disk_names_the_file(tmp_path):
    """A limit on the size of files stands for the full disk."""
    command = [sys.executable, "-m", "ecgquorum", "simulate", "N", "--out", "big.csv"]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # noqa: E731
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit, env=env, check=False)
    assert done.returncode == 1 and done.stderr == "error: big.csv: could not be written: File too large\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sample", ["sample:lbbb", "sample:af"])
def test_a_lead_that_does_not_exist_is_an_error(ecgquorum, tiny_run, sample):
    said = ecgquorum("predict", sample, "--lead", "V9", "--model", tiny_run, code=1)
    assert "V9" in said.stderr and said.stderr.count("\n") == 1 and not said.stdout
