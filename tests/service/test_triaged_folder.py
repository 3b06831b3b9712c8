"""A triaged folder opened at the desk: its results as triage stored them, and nothing twice."""

import json
import shutil
import signal
import time

import httpx
import pytest

from ecgquorum import load_ensemble, simulate
from ecgquorum.ensemble.bundle import add_to_card
from ecgquorum.errors import DeskError
from ecgquorum.recordings import SandboxLimits, write
from ecgquorum.service.store import verification
from ecgquorum.service.triaged_folder import TriagedFolder
from ecgquorum.triage import policy_of, triage_files, write_worklist
from ecgquorum.triage.run_triage import TriageOptions

from ..commands import Command, free_port
from .conftest import listening, put

ONE_READER = SandboxLimits(1, seconds=60.0)


@pytest.fixture
def source(examples, tmp_path):
    """Recordings of two patients in one and two files, a long one, one that is damaged, and a text."""
    folder = tmp_path / "source"
    (folder / "ward").mkdir(parents=True)
    for name in ("r0.npz", "r1.npz"):
        shutil.copy(examples / name, folder / name)
    for number, patient in enumerate((17, 17, 18)):
        path = folder / "ward" / f"p{number}.hea"
        write(simulate("NAO"[number], seed=40 + number, seconds=6, leads=("ECG",)).recording, path)
        path.write_text(path.read_text() + f"#Patient: {patient}\n")
    write(simulate("A", seed=50, seconds=30, leads=("ECG",)).recording, folder / "long.npz")
    (folder / "damaged.edf").write_bytes(b"This was a recording once. " * 20)
    (folder / "notes.txt").write_text("no recording")
    return folder


@pytest.fixture
def triaged(source, model, tmp_path):
    """The folder that triage wrote, at a budget of a third."""
    ensemble, out = load_ensemble(model), tmp_path / "triaged"
    options = TriageOptions(limits=ONE_READER)
    with triage_files(ensemble, policy_of(ensemble), [source], out, options) as journal:
        write_worklist(journal, out, "model", "", budget=0.34)
    return out


def stored_results(desk):
    """Name -> result, of all recordings at the desk."""
    from sqlalchemy import select

    from ecgquorum.service.store.tables import RecordingRow, ResultRow

    with desk.store.read_session() as session:
        rows = session.execute(select(RecordingRow, ResultRow).join(ResultRow)).all()
        return {row.name: (row, result.result) for row, result in rows}


def worklist(triaged):
    return [json.loads(line) for line in (triaged / "worklist.jsonl").read_text().splitlines()]


def test_results_are_those_of_triage_and_a_second_time_adds_nothing(triaged, make_desk, monkeypatch):
    desk = make_desk(audit_share=0.0)
    monkeypatch.setattr(desk.ensemble, "predict_windows", None)  # classifying again would fail
    report = TriagedFolder(triaged).open_at(desk, limits=ONE_READER)
    assert sum(report.added.values()) == 7 and report.n_skipped == 1 and report.problems == []
    found = stored_results(desk)
    assert set(found) == {"r0.npz", "r1.npz", "p0.hea", "p1.hea", "p2.hea", "long.npz", "damaged.edf"}
    for plain in worklist(triaged):
        if plain["decision"] == "skipped":
            continue
        row, result = found[plain["source"].rsplit("/", 1)[-1]]
        kept = ("label", "probabilities", "risk", "windows", "urgency", "decision", "decided_by", "measurements")
        assert {name: result.to_json()[name] for name in kept} == {name: plain[name] for name in kept}
        assert result.to_json()["findings"] == [
            one | {"detail": one["detail"].replace(str(triaged.parent / "source") + "/", "")}
            for one in plain["findings"]
        ]
        assert row.state == plain["decision"] and result.id == row.id
        assert str(triaged.parent) not in json.dumps(result.to_json()), "no path of this machine at the desk"
        assert (row.rate_hz is None) == (plain["decision"] == "unreadable")
    assert len(found["long.npz"][1].windows) == 5
    rows = {name: row for name, (row, _) in found.items()}
    assert rows["p0.hea"].patient == rows["p1.hea"].patient != rows["p2.hea"].patient
    assert "17" not in (rows["p0.hea"].patient, found["p0.hea"][1].acquisition.patient_id)
    with desk.store.read_session() as session:
        assert list(verification.verify_data(session, desk.files.hash_file)) == []
    again = TriagedFolder(triaged).open_at(desk, limits=ONE_READER)
    assert (sum(again.added.values()), again.n_known, again.problems) == (0, 7, [])
    assert len(stored_results(desk)) == 7


def test_missing_and_changed_files_are_named_and_left_out(triaged, source, make_desk):
    (source / "r0.npz").unlink()
    (source / "ward" / "p0.dat").unlink()
    write(simulate("N", seed=99, seconds=6, leads=("ECG",)).recording, source / "r1.npz", overwrite=True)
    desk = make_desk()
    report = TriagedFolder(triaged).open_at(desk, limits=ONE_READER)
    assert sum(report.added.values()) == 4 and len(report.problems) == 3
    named = {line.split(": ")[0].rsplit("/", 1)[-1]: line for line in report.problems}
    assert "no such file" in named["r0.npz"] and "has changed" in named["r1.npz"]
    assert "missing: ward/p0.dat" in named["p0.hea"] or "missing: p0.dat" in named["p0.hea"]
    assert "3 left out" in report.sentence()


def test_what_was_uploaded_before_keeps_its_result_and_what_waits_gets_one(triaged, make_desk, examples, classify):
    desk = make_desk()
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        done = put(client, examples / "r0.npz").json()["id"]
        classify(desk)
        waits = put(client, examples / "r1.npz").json()["id"]
    before = stored_results(desk)["r0.npz"][1]
    report = TriagedFolder(triaged).open_at(desk, limits=ONE_READER)
    assert report.n_known == 1 and sum(report.added.values()) == 6
    found = stored_results(desk)
    assert found["r0.npz"][1] == before and {found["r0.npz"][0].id, found["r1.npz"][0].id} == {done, waits}


def test_a_file_beyond_the_limit_is_named_and_stores_nothing(triaged, make_desk):
    desk = make_desk(upload_bytes=20_000)
    report = TriagedFolder(triaged).open_at(desk, limits=ONE_READER)
    (line,) = report.problems
    assert "long.npz" in line and "more than the limit of 20000" in line
    assert "long.npz" not in stored_results(desk)


def test_another_model_is_refused_before_anything_changes(triaged, model, make_desk, tmp_path):
    import torch

    other = load_ensemble(model)
    with torch.no_grad():
        next(iter(other.members[0].parameters())).add_(1.0)
    other.save(tmp_path / "other")
    add_to_card(tmp_path / "other", tmp_path / "served", {"policy": load_ensemble(model).card["policy"]})
    desk = make_desk(model=str(tmp_path / "served"))
    with pytest.raises(DeskError, match=r"triaged by another model .* open it with the --model that triaged it"):
        TriagedFolder(triaged).open_at(desk)
    assert stored_results(desk) == {}


@pytest.mark.parametrize("lost", ["worklist.jsonl", "journal.sqlite"])
def test_a_folder_that_triage_did_not_write_is_one_line(triaged, lost):
    (triaged / lost).unlink()
    with pytest.raises(DeskError, match=rf"expected a triaged folder, found no {lost}.*ecgquorum triage"):
        TriagedFolder(triaged)


def test_the_command_opens_a_triaged_folder_and_serves_it(source, model, tmp_path, ecgquorum):
    out, port = tmp_path / "triaged", free_port()
    ecgquorum("triage", source, "--out", out, "--model", model, "--plots", 0, "--readers", 1, code=3)
    told = ecgquorum("serve", "--data", tmp_path / "desk", "--triage", out, code=1).stderr
    assert told.count("\n") == 1 and "triaged by another model" in told
    command = ["serve", "--data", tmp_path / "desk", "--model", model, "--triage", out, "--port", port, "--identify"]
    process = Command(*command)
    try:
        started = time.monotonic()
        while True:
            try:
                listed = httpx.get(f"http://127.0.0.1:{port}/api/recordings", timeout=5).json()
                break
            except httpx.HTTPError:
                assert process.poll() is None and time.monotonic() - started < 240
                time.sleep(0.2)
        assert {one["state"] for one in listed["cases"]} <= {"open", "certain", "unreadable"}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)
    printed, problems = process.stdout, process.stderr
    assert listed["total"] + problems.count("left out: ") == 7, problems  # reading may take too long on a busy machine
    assert f"{listed['total']} recordings opened" in printed and "1 no recordings" in printed
