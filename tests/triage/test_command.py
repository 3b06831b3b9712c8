"""The command `triage`: exit codes, files that are not taken, long recordings, patients, output."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from ecgquorum import simulate
from ecgquorum.ensemble.result import Result, WindowResult
from ecgquorum.errors import DrawingError
from ecgquorum.recordings import write
from ecgquorum.triage.timeline import plot_timeline
from tests.contracts.device_formats import write_segments
from tests.triage.worklists import read_worklist


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "in"
    write(simulate("N", seed=1, leads=("ECG",), seconds=6).recording, place / "good.hea")
    return place


@pytest.fixture
def triage(ecgquorum, tiny_run, tmp_path):
    def run(*arguments, code=0):
        options = ("--model", tiny_run, "--out", tmp_path / "out", "--budget", "50%", "--plots", 0)
        return ecgquorum("triage", *options, *arguments, code=code)

    return run


def test_files_that_are_not_taken_are_listed_and_change_the_exit_code(triage, folder, tmp_path):
    others = ["docx", "h5", "parquet", "log", "bak", "tiff", "xyz"]
    for ending in others:
        (folder / f"one.{ending}").write_bytes(b"\x00\x01 no ECG that we know" * 50)
    printed = triage(folder, code=4)
    assert "7 skipped" in printed.stdout and "--ignore" in printed.stderr
    with (tmp_path / "out" / "worklist.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert len(rows) == 8 and rows["one.xyz"]["reason"] == "no known format (.xyz)"
    assert "one.parquet" in (tmp_path / "out" / "worklist.html").read_text()
    printed = triage(folder, "--ignore", "*.[dpltx]*", "--ignore", "one.h5", "--ignore", "*.bak", code=0)
    assert "7 ignored" in printed.stdout and "skipped" not in printed.stdout
    assert len(read_worklist(tmp_path / "out")) == 1, "what is ignored now is no longer listed"


def test_a_missing_path_is_an_error_but_the_others_are_sorted(triage, folder, tmp_path):
    printed = triage(folder, tmp_path / "nowhere", code=1)
    assert "nowhere: expected a recording, a folder or an archive, found no such file" in printed.stderr
    assert {row["decision"] for row in read_worklist(tmp_path / "out")} >= {"unreadable"}
    (tmp_path / "nowhere").mkdir()
    triage(folder, tmp_path / "nowhere", code=0)
    assert len(read_worklist(tmp_path / "out")) == 1


def test_a_broken_file_has_an_exit_code_of_its_own(triage, folder, tmp_path):
    (folder / "junk.edf").write_bytes(b"junk" * 100)
    (folder / "notes.txt").write_text("no recording")
    triage(folder, code=3)
    log = (tmp_path / "out" / "triage.log").read_text()
    assert "unreadable: " in log and "junk.edf" in log and "skipped: " in log and "exit code 3" in log
    triage(folder, code=3)
    again = (tmp_path / "out" / "triage.log").read_text().removeprefix(log)
    assert "junk.edf" not in again and "exit code 3" in again, "only what is new"


def test_segments_of_a_record_that_cannot_be_read_are_accounted_for(triage, folder, tmp_path):
    whole = write_segments(simulate("N", seed=2, seconds=6, leads=("ECG",)).recording, folder)
    header = whole.read_text()
    whole.write_text(header.replace("made/2 1", "made/2 1 9", 1))  # no segment has this rate
    printed = triage(folder, code=3)
    rows = {row["id"]: row for row in read_worklist(tmp_path / "out")}
    parts = [path.name for path in folder.iterdir() if path.stem not in (whole.stem, "good")]
    assert len(parts) >= 4 and rows.keys() == {"good", whole.stem, *parts}, rows.keys()
    assert {rows[name]["decision"] for name in parts} == {"skipped"} and f"{len(parts)} skipped" in printed.stdout
    assert rows[parts[0]]["reason"].startswith(f"a part of {whole.name}, which cannot be read; give its own path")
    triage(folder, code=3)
    assert len(read_worklist(tmp_path / "out")) == len(rows)
    whole.write_text(header)
    triage(folder, code=0)
    assert {row["id"] for row in read_worklist(tmp_path / "out")} == {"good", whole.stem}


def test_the_summary_is_json_and_quiet_is_quiet(triage, folder, tmp_path):
    (folder / "notes.txt").write_text("no recording")
    summary = json.loads(triage(folder, "--json", code=4).stdout)
    assert summary["files"] == 2 and summary["skipped"] == 1 and summary["exit_code"] == 4
    printed = triage(folder, "--quiet", "--log", tmp_path / "own.log", code=4)
    assert printed.stdout == printed.stderr == "" and "exit code 4" in (tmp_path / "own.log").read_text()


def test_classes_always_or_never_go_to_people(triage, folder):
    classes = "N,A,O,~"
    assert "1 deferred" in triage(folder, "--always", classes).stdout
    assert "found AF" in triage(folder, "--urgent", "AF", code=1).stderr
    assert "other options" in triage(folder, "--never", classes, code=1).stderr, "results are not mixed"


@pytest.mark.long
def test_a_long_recording_is_deferred_when_its_windows_disagree(ecgquorum, folder, tmp_path):
    """Two minutes of AF in half an hour, which the mean of all windows does not show."""
    normal, af = (simulate(name, seed=4, leads=("ECG",), seconds=240).recording for name in "NA")
    parts = [normal.signal] * 3 + [af.signal[:, : af.signal.shape[1] // 2]] + [normal.signal] * 4
    write(replace(normal, signal=np.concatenate(parts, axis=1)), folder / "long.npz")
    command = ("triage", folder / "long.npz", "--out", tmp_path / "out", "--plots", 1)
    ecgquorum(*command, "--window", 60, "--stride", 30)
    (row,) = read_worklist(tmp_path / "out")
    assert (row["label"], row["decision"], row["decided_by"]) == ("N", "deferred", "windows")
    assert row["urgent_class"] == "A" and row["urgency"] == 1
    found = {window["start_s"] for window in row["windows"] if window["label"] == "A"}
    assert found >= {720.0, 750.0, 780.0} and all(660 <= start <= 840 for start in found)
    assert [window["start_s"] for window in row["windows"]][:3] == [0.0, 30.0, 60.0]
    with (tmp_path / "out" / "worklist.csv").open(newline="") as file:
        (cells,) = csv.DictReader(file)
    assert int(cells["windows"]) == 59 and cells["worst_window_label"] == "A"
    assert 660 <= float(cells["worst_window_start_s"]) <= 840
    pictures = sorted(path.name for path in (tmp_path / "out" / "plots").iterdir())
    page = (tmp_path / "out" / "worklist.html").read_text()
    assert len(pictures) == 2 and all(f'href="plots/{name}"' in page for name in pictures)
    refused = ecgquorum(*command[:-4], "--out", tmp_path / "o2", "--window", 90, code=1)
    assert "expected 2 to 60 s, the model's own" in refused.stderr


def test_a_timeline_needs_windows():
    with pytest.raises(DrawingError, match="needs several windows"):
        plot_timeline(Result("x", "x"))
    windows = tuple(WindowResult(60.0 * i, 60.0, "NA"[i % 2], 0.9, 0.1) for i in range(1440))
    figure = plot_timeline(Result("x", "x", "N", {"N": 0.6, "A": 0.4}, windows=windows, seconds=86400.0))
    upper, lower = figure.axes
    assert [label.get_text() for label in upper.get_yticklabels()] == ["N  50 %", "A  50 %"]
    assert lower.get_xlabel() == "time (h)" and upper.get_xlim() == (0.0, 24.0)


@pytest.mark.parametrize("identify", [True, False])
def test_patients_are_shown_on_request_only(triage, folder, tmp_path, identify):
    header = folder / "good.hea"
    header.write_text(header.read_text() + "# Age: 74\n# Sex: F\n# Patient ID: P-17\n# Device: H12\n")
    triage(folder, "--fhir", *(["--identify"] if identify else []))
    written = [path for path in (tmp_path / "out").rglob("*") if path.suffix in (".csv", ".jsonl", ".html", ".ndjson")]
    found = {path.name for path in written if "P-17" in path.read_text()}
    shown = {"worklist.csv", "worklist.jsonl", "worklist.html", "Patient.ndjson", "Observation.ndjson"}
    assert len(written) == (7 if identify else 6) and found == (shown if identify else set())
    (row,) = read_worklist(tmp_path / "out")
    assert row["acquisition"]["patient_id"] == ("P-17" if identify else None)


def test_only_its_own_files_are_left_out_of_the_folder_it_writes_to(triage, folder, tmp_path):
    out = tmp_path / "out"
    for name in ("plots-of-smith.csv", "fhir.xyz", "worklist.edf", "old.partial", "plots/more.edf", "deep/plots/x.png"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("no recording")
    triage(folder, out, "--fhir", code=3)
    triage(folder, out, "--fhir", code=3)
    rows = read_worklist(out)
    assert len(rows) == 7, "one recording and six files of the user; none of triage itself"


def test_recordings_of_one_name_at_a_relative_path_that_does_not_exist(triage, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = triage(folder, "good", code=1)
    assert "good: expected a recording" in printed.stderr
    assert {row["id"] for row in read_worklist(tmp_path / "out")} == {"in/good.hea", "good"}


def test_a_recording_that_cannot_be_drawn_does_not_stop_the_worklist(triage, folder, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ValueError("cannot be drawn")

    monkeypatch.setattr("ecgquorum.triage.plots.plot_recording", fail)
    triage(folder, "--plots", 1)
    assert len(read_worklist(tmp_path / "out")) == 1
    assert "no plot: ValueError: cannot be drawn" in (tmp_path / "out" / "triage.log").read_text()
