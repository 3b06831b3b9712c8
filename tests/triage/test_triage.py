"""Triage: every file has a row, bad files do not stop it, and a kill changes nothing."""

import csv
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ecgquorum import Recording, load_ensemble, simulate
from ecgquorum.ensemble.risk import RiskModel
from ecgquorum.errors import TriageError
from ecgquorum.recordings import SandboxLimits, write
from ecgquorum.triage import Threshold, TriageOptions, Urgency, triage_files, write_worklist
from tests.commands import Command
from tests.triage.worklists import assert_same_worklist
from tests.triage.worklists import read_worklist as lines

POLICY = Threshold(0.3)
ONE = SandboxLimits(1, seconds=60.0)
DECISIONS = ["deferred", "certain", "unreadable", "skipped"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sound recordings in four formats, one with a lead off, and files that are none."""
    place = tmp_path_factory.mktemp("in")
    for number, ending in enumerate(["hea", "edf", "csv", "npz"] * 3):
        write(
            simulate("NAO"[number % 3], seed=number, leads=("ECG",), seconds=6).recording,
            place / f"r{number:02d}.{ending}",
        )
    write(Recording("off", np.full((1, 3000), 0.1), 500.0, ("ECG",)), place / "off.npz")
    (place / "junk.edf").write_bytes(b"junk" * 100)
    (place / "junk.xml").write_text("<x/>")
    (place / "readme.txt").write_text("no recording")
    return place


@pytest.fixture
def ensemble(tiny_run):
    return load_ensemble(tiny_run)


def run(ensemble, folder, out, **options):
    with triage_files(ensemble, POLICY, [folder], out, TriageOptions(limits=ONE), **options) as journal:
        write_worklist(journal, out, "tiny", POLICY.sentence())
    return lines(out)


def test_every_recording_has_a_row_in_the_worklist(ensemble, folder, tmp_path):
    rows = run(ensemble, folder, tmp_path / "out")
    assert len(rows) == 16
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == 16, "ids are unique, of files of the same name by their paths"
    for name in ("junk.edf", "junk.xml", "off"):
        assert by_id[name]["decision"] == "unreadable"
    assert "lead off on ECG" in by_id["off"]["reason"]
    assert by_id["readme.txt"]["decision"] == "skipped" and by_id["readme.txt"]["reason"] == "no known format (.txt)"
    sound = [row for row in rows if row["id"].startswith("r") and row["decision"] != "skipped"]
    assert len(sound) == 12
    predicted = ensemble.predict([simulate("NAO"[0], seed=0, leads=("ECG",), seconds=6).recording])
    assert by_id["r00"]["uncertainty"] == pytest.approx(predicted.uncertainty[0], abs=1e-2)
    assert by_id["r00"]["probabilities"]["N"] == pytest.approx(predicted.probs[0, 0], abs=1e-2)
    for row in sound:
        doubtful = row["quality"] == "doubtful" or row["risk"] > 0.3 or max(row["probabilities"].values()) < 0.5
        assert row["decision"] == ("deferred" if doubtful else "certain")
        assert len(row["sha256"]) == 64 and row["model_sha256"] == ensemble.card["weights_sha256"]
    order = [DECISIONS.index(row["decision"]) for row in rows]
    assert order == sorted(order)
    page = (tmp_path / "out" / "worklist.html").read_text()
    assert page.count("<section") == 16 and page.count("<svg") == 13 and "not a medical device" in page


@pytest.mark.long
def test_a_resumed_triage_classifies_nothing_twice(ensemble, folder, tmp_path, monkeypatch):
    whole = run(ensemble, folder, tmp_path / "whole")
    asked = []
    real = type(ensemble).predict_windows
    monkeypatch.setattr(
        type(ensemble), "predict_windows", lambda self, ids, *rest: asked.extend(ids) or real(self, ids, *rest)
    )
    monkeypatch.setattr(sys.modules["ecgquorum.ensemble.predict_files"], "GROUP", 4)
    out = tmp_path / "again"
    first = run(ensemble, folder, out)
    assert len(asked) == 13
    assert run(ensemble, folder, out) == first
    assert len(asked) == 13
    with sqlite3.connect(out / "journal.sqlite") as database:  # as a kill after the second group would leave it
        database.execute("DELETE FROM results WHERE rowid > 9")  # the first is of no recording
    database.close()
    assert_same_worklist(run(ensemble, folder, out), first, ensemble, POLICY.threshold)
    assert 13 < len(asked) < 26
    assert [row["source"] for row in whole] and {r["source"] for r in whole} == {r["source"] for r in first}


def test_results_of_another_model_or_policy_are_not_mixed(ensemble, folder, tmp_path):
    triage_files(ensemble, POLICY, [folder], tmp_path / "out", TriageOptions(limits=ONE)).close()
    with pytest.raises(TriageError, match="choose another --out"):
        triage_files(ensemble, Threshold(0.4), [folder], tmp_path / "out")
    ensemble.temperature *= 2
    with pytest.raises(TriageError, match="choose another --out"):
        triage_files(ensemble, POLICY, [folder], tmp_path / "out")


def test_results_of_another_risk_are_not_mixed(ensemble, folder, tmp_path):
    triage_files(ensemble, POLICY, [folder], tmp_path / "out", TriageOptions(limits=ONE)).close()
    ensemble.risk_model = RiskModel(("confidence",), (0.8,), -1.0, {})
    with pytest.raises(TriageError, match="choose another --out"):
        triage_files(ensemble, POLICY, [folder], tmp_path / "out")


def test_unusual_names_are_escaped_and_formulas_quoted(ensemble, folder, tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    for name in (b"=1+1.npz", b"caf\xe9.npz", b"a\nb.npz"):
        Path(os.fsdecode(os.fsencode(place) + b"/" + name)).write_bytes((folder / "r03.npz").read_bytes())
    rows = run(ensemble, place, tmp_path / "out")
    assert {row["id"] for row in rows} == {"=1+1", r"caf\xe9", "a\nb"} and all(row["label"] for row in rows)
    with (tmp_path / "out" / "worklist.csv").open(newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} == {"'=1+1", r"caf\xe9", "a\nb"}


def test_a_worklist_inside_the_folder_is_not_read(ensemble, folder, tmp_path):
    place = tmp_path / "in"
    shutil.copytree(folder, place)
    assert run(ensemble, place, place / "sorted") == run(ensemble, place, place / "sorted")
    assert len(lines(place / "sorted")) == 16


def test_a_changed_file_is_classified_again(ensemble, folder, tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    shutil.copy(folder / "r03.npz", place / "one.npz")
    (before,) = run(ensemble, place, tmp_path / "out")
    shutil.copy(folder / "r07.npz", place / "one.npz")
    (after,) = run(ensemble, place, tmp_path / "out")
    assert before["source"] == after["source"] and before["sha256"] != after["sha256"]


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_ctrl_c_in_a_terminal_prints_one_line(tiny_run, many, tmp_path, ecgquorum, options):
    """A terminal sends the signal to all processes of the group, so to sandbox workers too."""
    command = [*triage_command(many, tiny_run, tmp_path / "out"), *options]
    process = Command(*command, new_session=True)
    try:
        while process.poll() is None and not answers_in(tmp_path / "out"):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
    finally:
        process.kill()
    # A worker that is killed in the moment in which it starts a reader leaves that one without its instructions.
    said = re.sub(
        r'Traceback[^\n]*\n  File "<string>", line 1.*?EOFError: Ran out of input\n',
        "",
        process.stderr,
        flags=re.DOTALL,
    )
    assert process.poll() == 130 and "Traceback" not in said and "the same command resumes" in said
    if options:
        ecgquorum(*command, code=3)
        assert len(lines(tmp_path / "out")) == 106


def test_an_invalid_journal_is_refused(ensemble, folder, tmp_path):
    (tmp_path / "journal.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(TriageError, match="choose another --out"):
        triage_files(ensemble, POLICY, [folder], tmp_path)


@pytest.fixture(scope="module")
def many(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("many") / "in"
    shutil.copytree(folder, place)
    for number in range(90):
        recording = simulate("NAO"[number % 3], seed=number, leads=("ECG",), seconds=6).recording
        write(recording, place / f"s{number:03d}.npz")
    return place


def triage_command(place, model, out):
    line = ["triage", str(place), "--budget", "20%", "--plots", "0", "--floor", "0"]
    return [*line, "--model", str(model), "--out", str(out)]


def answers_in(out):
    """Number of recordings with a result, read while another process writes."""
    try:
        with sqlite3.connect(f"file:{out / 'journal.sqlite'}?mode=ro", uri=True) as database:
            found = database.execute("SELECT count(*) FROM results WHERE stamp <> ''").fetchone()[0]
        database.close()
    except sqlite3.Error:
        return 0
    return found


@pytest.mark.long
def test_a_killed_triage_resumes_to_the_same_worklist(tiny_run, many, tmp_path):
    """kill -9 in the middle, twice, then to the end: the same worklist as an undisturbed run, nothing twice."""
    assert Command(*triage_command(many, tiny_run, tmp_path / "whole")).wait() == 3
    command, killed = triage_command(many, tiny_run, tmp_path / "killed"), tmp_path / "killed"
    answered = [0]
    for _ in range(2):
        process = Command(*command)
        while process.poll() is None and answers_in(killed) <= answered[-1]:
            time.sleep(0.05)
        process.kill()
        answered.append(answers_in(killed))
    assert 0 < answered[1] <= answered[2]
    assert Command(*command).wait() == 3
    rows = lines(tmp_path / "killed")
    assert len(rows) == 106
    assert_same_worklist(rows, lines(tmp_path / "whole"), load_ensemble(tiny_run))
    with (tmp_path / "killed" / "worklist.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [row["id"] for row in rows]


def test_a_budget_is_kept_within_the_batch(ensemble, folder, tmp_path):
    options = TriageOptions(urgency=Urgency(floor=0), limits=ONE)
    with triage_files(ensemble, POLICY, [folder], tmp_path / "out", options) as journal:
        summary = write_worklist(journal, tmp_path / "out", "tiny", "", budget=0.2)
    rows = lines(tmp_path / "out")
    deferred = [row for row in rows if row["decision"] == "deferred"]
    assert summary.decisions["deferred"] == len(deferred) == 2, "20 % of the 12 that can be used"
    certain = [row["risk"] for row in rows if row["decision"] == "certain"]
    assert min(row["risk"] for row in deferred) >= max(certain)


def test_a_missing_path_has_a_row_in_the_worklist(ensemble, tmp_path):
    with triage_files(ensemble, POLICY, [tmp_path / "nowhere"], tmp_path / "out") as journal:
        (entry,) = journal.entries()
        (failure,) = journal.failures
    assert entry.result.decision == "unreadable" and "found no such file" in entry.result.reason
    assert failure.reason == entry.result.reason


@pytest.mark.long
def test_watch_classifies_new_files(tiny_run, tmp_path):
    (tmp_path / "in").mkdir()
    command = ["triage", tmp_path / "in", "--watch", "--budget", "50%", "--model", tiny_run, "--out", tmp_path / "out"]
    process = Command(*command)
    worklist = tmp_path / "out" / "worklist.jsonl"
    try:
        for name in ("one", "two"):
            write(simulate("N", seed=1, leads=("ECG",), seconds=6).recording, tmp_path / "in" / f"{name}.hea")
            waited = time.monotonic()
            while not worklist.is_file() or name not in {row["id"] for row in lines(tmp_path / "out")}:
                assert time.monotonic() - waited < 90 and process.poll() is None
                time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    finally:
        process.kill()
