"""Triage of a folder with every format, broken files and sound recordings."""

import json
import subprocess
import sys

import numpy as np
import pytest

from ecgquorum import Recording, simulate
from ecgquorum.recordings import STANDARD_LEADS, write

from ..contracts.formats import RATE_HZ, WRITERS

N_BROKEN = 20
BREAKABLE = (".edf", ".npz", ".npy", ".mat", ".dcm", ".xml")


def fill(folder, n_sound):
    """One file of every format, 20 broken ones, and sound one-lead recordings of 30 s."""
    made = simulate("N", seed=1, seconds=12, rate_hz=RATE_HZ).recording
    twelve = Recording("made", np.round(made.signal, 3), RATE_HZ, STANDARD_LEADS)
    for write_it in WRITERS:
        place = folder / "formats" / write_it.__name__.removeprefix("write_")
        place.mkdir(parents=True)
        write_it(twelve, place)
    (folder / "sound").mkdir()
    for number in range(n_sound):
        one = simulate("NAO"[number % 3], seed=number, leads=("ECG",), seconds=30).recording
        write(one, folder / "sound" / f"s{number:04d}.hea")
    (folder / "broken").mkdir()
    whole = [path for path in sorted((folder / "formats").rglob("*")) if path.suffix in BREAKABLE]
    rng = np.random.default_rng(0)
    for number in range(N_BROKEN):
        path = whole[number % len(whole)]
        content = path.read_bytes()
        broken = content[: len(content) // 3] if number % 2 else rng.bytes(len(content) // 2)
        (folder / "broken" / f"b{number:02d}{path.suffix}").write_bytes(broken)


def triaged(folder, out, *options):
    """The command's worklist, with --rate, --leads and --units for files without a header."""
    leads = ",".join(STANDARD_LEADS)
    defaults = ["--lead", "II", "--rate", f"{RATE_HZ:g}", "--units", "mV", "--leads", leads, "--budget", "10%"]
    line = [sys.executable, "-m", "ecgquorum", "triage", str(folder), *defaults, "--out", str(out), *options]
    subprocess.run(line, check=True, capture_output=True)
    return [json.loads(line) for line in (out / "worklist.jsonl").read_text().splitlines()]


def check(rows, n_sound):
    in_folder = {name: [row for row in rows if f"/{name}/" in row["source"]] for name in ("formats", "sound", "broken")}
    assert {name: len(found) for name, found in in_folder.items()} == {
        "formats": len(WRITERS),
        "sound": n_sound,
        "broken": N_BROKEN,
    }
    assert all(row["decision"] == "unreadable" and row["reason"] for row in in_folder["broken"])
    assert all(row["decision"] != "unreadable" for row in in_folder["formats"] + in_folder["sound"])
    answers = np.array([row["uncertainty"] for row in in_folder["formats"]])
    assert np.ptp(answers) < 0.01, "the same recording in every format has the same answer"
    deferred = [row for row in rows if row["decision"] == "deferred"]
    doubtful = [row for row in rows if row["quality"] == "doubtful"]
    assert len(deferred) <= max(len(rows) // 10, len(doubtful))


def test_every_format_broken_files_and_some_sound_ones(tiny_run, tmp_path):
    fill(tmp_path / "in", 40)
    check(triaged(tmp_path / "in", tmp_path / "out", "--model", str(tiny_run)), 40)


@pytest.mark.slow
def test_every_format_broken_files_and_a_thousand_sound_ones(tmp_path):
    fill(tmp_path / "in", 1000)
    check(triaged(tmp_path / "in", tmp_path / "out"), 1000)
