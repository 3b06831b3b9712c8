"""Triage of a folder with every format, broken files, files that are no ECG, and sound recordings."""

import json

import numpy as np
import pytest

from ecgquorum import Recording, simulate
from ecgquorum.recordings import STANDARD_LEADS, write

from ..contracts.formats import RATE_HZ, WRITERS

N_BROKEN, N_OTHERS = 20, 50
BREAKABLE = (".edf", ".npz", ".npy", ".mat", ".dcm", ".xml")


OTHERS = ("txt", "pdf", "jpg", "docx", "log", "html", "sqlite", "parquet", "py", "")


def fill(folder, n_sound):
    """One file of every format, 20 broken ones, 50 that are no ECG, and sound one-lead recordings of 30 s."""
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
    (folder / "others").mkdir()
    for number in range(N_OTHERS):
        ending = OTHERS[number % len(OTHERS)]
        name = f"o{number:02d}.{ending}" if ending else f"o{number:02d}"
        (folder / "others" / name).write_bytes(b"" if number % 7 == 0 else rng.bytes(300))


def triaged(ecgquorum, folder, out, *options):
    """The command's worklist, with --rate, --leads and --units for files without a header."""
    leads = ",".join(STANDARD_LEADS)
    defaults = ["--lead", "II", "--rate", f"{RATE_HZ:g}", "--units", "mV", "--leads", leads, "--budget", "10%"]
    line = ["triage", folder, *defaults, "--out", out, *options, "--json", "--plots", "0", "--floor", "0"]
    done = ecgquorum(*line, code=3)
    check_summary(json.loads(done.stdout), folder)
    return [json.loads(line) for line in (out / "worklist.jsonl").read_text().splitlines()]


def check_summary(summary, folder):
    """Every file is counted: as a recording, as the signal file of one, as unreadable, or as skipped."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    signals = [path for path in files if path.suffix in (".dat", ".mat") and path.with_suffix(".hea").exists()]
    signals += [*folder.glob("formats/flac/*.dat"), *folder.glob("formats/segments/made_*.hea")]
    assert summary["files"] == len(files) - len(signals)
    assert summary["skipped"] == N_OTHERS and summary["unreadable"] == N_BROKEN and summary["missing"] == []


def check(rows, n_sound):
    folders = ("formats", "sound", "broken", "others")
    in_folder = {name: [row for row in rows if f"/{name}/" in row["source"]] for name in folders}
    assert {name: len(found) for name, found in in_folder.items()} == {
        "formats": len(WRITERS),
        "sound": n_sound,
        "broken": N_BROKEN,
        "others": N_OTHERS,
    }
    assert len({row["id"] for row in rows}) == len(rows) == len({row["source"] for row in rows})
    assert all(row["decision"] == "skipped" and row["reason"] for row in in_folder["others"])
    assert all(row["decision"] == "unreadable" and row["reason"] for row in in_folder["broken"])
    assert all(row["decision"] != "unreadable" for row in in_folder["formats"] + in_folder["sound"])
    answers = np.array([row["uncertainty"] for row in in_folder["formats"]])
    assert np.ptp(answers) < 0.01, "the same recording in every format has the same answer"
    deferred = [row for row in rows if row["decision"] == "deferred"]
    doubtful = [row for row in rows if row["decided_by"] == "quality" and row["decision"] == "deferred"]
    by_rules = [row for row in deferred if row["decided_by"] not in ("quality", "policy")]
    usable = [row for row in rows if row["decision"] in ("deferred", "certain") and row["decided_by"] != "quality"]
    assert len(deferred) - len(doubtful) <= max(len(usable) // 10, len(by_rules))


@pytest.mark.long
def test_every_format_broken_files_and_some_sound_ones(tiny_run, tmp_path, ecgquorum):
    fill(tmp_path / "in", 40)
    check(triaged(ecgquorum, tmp_path / "in", tmp_path / "out", "--model", str(tiny_run)), 40)


@pytest.mark.slow
def test_every_format_broken_files_and_a_thousand_sound_ones(tmp_path, ecgquorum):
    fill(tmp_path / "in", 1000)
    check(triaged(ecgquorum, tmp_path / "in", tmp_path / "out"), 1000)
