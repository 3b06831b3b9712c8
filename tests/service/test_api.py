"""The API on a running server: upload, list, claim, verdict, export."""

import csv
import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise

import httpx
import numpy as np
import pytest
from fhir.resources.R4B import get_fhir_model_class

from ecgquorum import Cohort, read
from ecgquorum.cli import main
from ecgquorum.service.store import audit, recordings

from .conftest import listening, put


@pytest.fixture
def open_case(client, desk, examples, classify):
    """The id of an open case."""
    for path in sorted(examples.glob("r*.npz")):
        put(client, path)
    classify(desk)
    cases = client.get("/api/recordings", params={"state": "open"}).json()["cases"]
    assert cases
    return cases[0]["id"]


def browsed(client, path):
    """A page, as a browser gets it that shares no cookies with the client."""
    return httpx.get(client.base_url.join(path), timeout=60).text


def test_uploading_is_idempotent_by_content(client, desk, examples):
    first = put(client, examples / "r0.npz")
    assert first.status_code == 201 and first.json()["state"] == "waiting"
    again = put(client, examples / "r0.npz", "C:\\patients\\..\\other name.npz")
    assert again.status_code == 200 and again.json() == first.json() | {"new": False}
    kept = [path for path in (desk.files.folder / "files").rglob("*") if path.is_file()]
    assert len(kept) == 1 and kept[0].read_bytes() == (examples / "r0.npz").read_bytes()


def test_a_pair_waits_as_incomplete(client, desk, examples, classify):
    half = put(client, examples / "pair.hea").json()
    assert half["state"] == "incomplete" and half["missing"] == ["pair.dat"]
    whole = put(client, examples / "pair.dat").json()
    assert (whole["id"], whole["state"], whole["missing"]) == (half["id"], "waiting", [])
    classify(desk)
    case = client.get(f"/api/recordings/{half['id']}").json()
    assert case["state"] in ("open", "certain")
    trace = client.get(f"/api/recordings/{half['id']}/trace").json()
    samples = np.frombuffer(client.get(f"/api/recordings/{half['id']}/samples").content, "<f4")
    there = read(examples / "pair.hea")
    assert trace == {"rate_hz": 300.0, "leads": ["ECG"], "n_samples": there.n_samples}
    np.testing.assert_array_equal(samples.reshape(1, -1), there.signal)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.npz", "/abs/r.npz", "a\\b\\..\\r.npz", "r\n\x00é.npz", ".npz", "x" * 900 + ".npz"]
)
def test_no_name_of_a_client_becomes_a_path(client, desk, examples, name):
    before = set(desk.files.folder.parent.rglob("*"))
    answer = put(client, examples / "r0.npz", name)
    assert answer.status_code in (201, 415)
    new = {path for path in set(desk.files.folder.parent.rglob("*")) - before if "sqlite" not in path.name}
    assert all(len(path.name) in (2, 64) for path in new)


def test_unsupported_files_are_refused_before_the_body_is_read(client):
    assert client.put("/api/recordings", params={"name": "x.exe"}, content=b"MZ").status_code == 415
    assert client.put("/api/recordings", params={"name": "noending"}, content=b"MZ").status_code == 415
    assert client.put("/api/recordings", params={"name": "x.npz"}, content=b"").status_code == 422
    assert client.put("/api/recordings", content=b"x").status_code == 422


def test_size_limits_hold_while_bytes_come_in(make_desk):
    desk = make_desk(upload_bytes=1 << 20)
    sent = 0

    def endless():
        nonlocal sent
        while sent < 1 << 30:
            sent += 1 << 16
            yield b"x" * (1 << 16)

    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        declared = client.put("/api/recordings", params={"name": "x.npz"}, content=b"x" * (1 << 21))
        assert declared.status_code == 413
        with suppress(httpx.TransportError):  # a server may hang up on what it no longer reads
            assert client.put("/api/recordings", params={"name": "x.npz"}, content=endless()).status_code == 413
        assert sent < 1 << 28
        large = client.post("/api/session", content=b"x" * (1 << 20))
        assert large.status_code == 413
    assert list((desk.files.folder / "incoming").iterdir()) == []
    assert [path for path in (desk.files.folder / "files").rglob("*") if path.is_file()] == []


def test_hostile_files_are_unreadable_and_stop_nothing(client, desk, examples, classify, tmp_path):
    (tmp_path / "junk.edf").write_bytes(b"junk" * 100)
    (tmp_path / "bomb.xml").write_text('<!DOCTYPE a [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><a>&c;</a>')
    liar = tmp_path / "liar"
    liar.write_text("liar 1 300 999999999\n../../../etc/passwd 16 1000 16 0 0 0 0 ECG\n")
    refused = put(client, liar, name="liar.hea")
    assert refused.status_code == 422 and "no signal file in its own folder" in refused.json()["detail"]
    np.savez(tmp_path / "inf.npz", signal=np.full((1, 3000), np.inf), rate_hz=300.0, leads=["ECG"], units="mV")
    ids = [put(client, path).json()["id"] for path in sorted(tmp_path.glob("*.*")) if path.is_file()]
    good = put(client, examples / "r1.npz").json()["id"]
    classify(desk)
    for one in ids:
        case = client.get(f"/api/recordings/{one}").json()
        assert case["state"] == "unreadable" and case["problem"]
        assert str(desk.files.folder) not in case["problem"]
    assert client.get(f"/api/recordings/{good}").json()["state"] in ("open", "certain")


def test_the_result_is_hidden_before_the_first_verdict(client, desk, open_case):
    shown = client.get(f"/api/recordings/{open_case}").json()
    assert shown["answer"] is None and shown["state"] == "open" and shown["verdicts"] == []
    assert client.get(f"/api/recordings/{open_case}/maps").status_code == 409
    listed = {case["id"]: case for case in client.get("/api/recordings").json()["cases"]}
    assert listed[open_case]["answer"] is None
    page = browsed(client, f"/cases/{open_case}")
    assert "Ensemble:" not in page and "data-revealed>" not in page
    assert "hidden until your first verdict" in browsed(client, "/")
    refused = client.post(f"/api/recordings/{open_case}/verdicts", json={"label": "N"})
    assert refused.status_code == 409 and "claimed" in refused.json()["detail"]
    assert client.put(f"/api/recordings/{open_case}/claim").json()["claimed_by"] == "local"
    wrong = client.post(f"/api/recordings/{open_case}/verdicts", json={"label": "?"})
    assert wrong.status_code == 422
    first = client.post(f"/api/recordings/{open_case}/verdicts", json={"label": "O"}).json()
    assert first["state"] == "open" and first["answer"]["label"] in "NAO~"
    assert len(first["answer"]["raw_member_probabilities"]) == 2
    page = browsed(client, f"/cases/{open_case}")
    assert "Ensemble:" in page and "data-revealed>" in page
    maps = client.get(f"/api/recordings/{open_case}/maps").json()
    assert maps["start_s"] == 0 and maps["stop_s"] == pytest.approx(6.0)
    for member in maps["members"]:
        for values in member["leads"].values():
            assert 1 < len(values) <= 1000 and min(values) >= 0 and max(values) <= 1
    final = client.post(f"/api/recordings/{open_case}/verdicts", json={"label": first["answer"]["label"]}).json()
    assert final["state"] == "confirmed" and [v["stage"] for v in final["verdicts"]] == ["first", "final"]
    assert client.put(f"/api/recordings/{open_case}/claim").status_code == 409


def judged(client, case_id, label):
    client.put(f"/api/recordings/{case_id}/claim").raise_for_status()
    for _ in range(2):
        client.post(f"/api/recordings/{case_id}/verdicts", json={"label": label}).raise_for_status()


def test_exports_are_read_by_cohort_build(client, desk, examples, classify, tmp_path, monkeypatch):
    for path in sorted(examples.iterdir()):
        put(client, path)
    classify(desk)
    verdicts = {}
    for number, case in enumerate(client.get("/api/recordings", params={"state": "open"}).json()["cases"]):
        verdicts[case["id"]] = "NA"[number % 2]
        judged(client, case["id"], verdicts[case["id"]])
    other, verdict = verdicts.popitem()[0], {"kind": "none", "comment": "=paced?"}
    client.post(f"/api/recordings/{other}/reopen", json={"reason": "test"}).raise_for_status()
    client.put(f"/api/recordings/{other}/claim").raise_for_status()
    for _ in range(2):
        client.post(f"/api/recordings/{other}/verdicts", json=verdict).raise_for_status()
    table = list(csv.DictReader(io.StringIO(client.get("/api/export/labels.csv").text)))
    assert {row["id"].split(".")[0]: row["label"] for row in table} == verdicts | {other: "none of these"}
    assert (
        table[-1]["kind"] == "none"
        and [row["comment"] for row in table] == [""] * len(verdicts) + ["'=paced?"]
        and all(row["reader"] == "local" for row in table)
    )
    archive = client.get("/api/export/cohort.zip").content
    (tmp_path / "reviews.zip").write_bytes(archive)
    names = zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert {name.split(".")[0].split("-")[0] for name in names} == {*verdicts, "labels", "other"}
    answers = zipfile.ZipFile(io.BytesIO(archive)).read("other-answers.jsonl").decode().splitlines()
    assert [json.loads(line)["id"].split(".")[0] for line in answers] == [other]
    out = tmp_path / "cohort"
    argv = ["ecgquorum", "cohort", "build", tmp_path / "reviews.zip", "--out", out, "--tune-share", "0.3"]
    monkeypatch.setattr("sys.argv", [str(word) for word in [*argv, "--test-share", "0"]])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    built = Cohort(out)
    assert {row.id.split(".")[0]: row.label for row in built.rows} == verdicts
    resources = zipfile.ZipFile(io.BytesIO(client.get("/api/export/fhir.zip").content))
    reports = [json.loads(line) for line in resources.read("DiagnosticReport.ndjson").splitlines()]
    final = [one for one in reports if one["status"] == "final"]
    assert len(final) == len(verdicts) + 1 and len(reports) == len(list(examples.glob("*.[nh]*")))
    for kind in ("DiagnosticReport", "Observation", "Device"):
        for line in resources.read(f"{kind}.ndjson").splitlines():
            get_fhir_model_class(kind).model_validate_json(line)
    lines = [json.loads(line) for line in client.get("/api/export/audit.jsonl").text.splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["action"] == "exported" and lines[-1]["subject"] == "audit.jsonl"
    assert all(a["sha256"] == b["previous_sha256"] for a, b in pairwise(lines))
    assert list((desk.files.folder / "incoming").iterdir()) == []


def test_measures_are_those_of_the_verdicts(client, desk, open_case):
    label = "A"
    judged(client, open_case, label)
    found = client.get("/api/measures").json()
    assert found["deferral"]["total"] == 6
    assert sum(one["total"] for one in found["agreement"].values()) == 1
    answered = client.get(f"/api/recordings/{open_case}").json()["answer"]["label"]
    assert found["confusion"][label][answered] == 1
    assert sum(found["drift"]["bins"]) == 6 - found["counts"]["open"], "too few open cases to be a group"
    assert sum(step["uploaded"] for step in found["steps"]) == 6
    page = client.get("/measures").text
    assert page.count("<svg") >= 5 and "style=" not in page


def test_events_are_sent_on_changes(client, examples):
    with client.stream("GET", "/api/events") as events:
        lines = events.iter_lines()
        first = next(line for line in lines if line.startswith("data:"))
        with httpx.Client(base_url=client.base_url, timeout=60) as other:
            put(other, examples / "r3.npz")
        assert next(line for line in lines if line.startswith("data:")) != first


def test_every_page_opens_and_states_research_use(client, open_case):
    for path in ("/", "/?state=open", "/upload", "/measures", "/export", "/audit", f"/cases/{open_case}", "/login"):
        page = client.get(path)
        assert page.status_code == 200 and "not a medical device" in page.text
        assert "<script>" not in page.text and " style=" not in page.text and "onclick" not in page.text


def test_the_audit_log_records_every_action(client, desk, open_case):
    client.put(f"/api/recordings/{open_case}/claim")
    client.post(f"/api/recordings/{open_case}/verdicts", json={"label": "N"})
    actions = [entry["action"] for entry in client.get("/api/audit").json()["entries"] if entry["subject"] == open_case]
    assert actions == ["first verdict", "claimed", "classified", "uploaded"]
    with desk.store.read_session() as session:
        assert audit.verify_log(session).problem == ""
        assert recordings.find_recording(session, open_case)


@pytest.mark.long
def test_many_uploads_at_once(make_desk, tmp_path):
    """200 at a time: none fails, is lost or is stored twice."""
    desk = make_desk()
    with (
        listening(desk) as address,
        httpx.Client(base_url=address, timeout=120, limits=httpx.Limits(max_connections=200)) as client,
    ):

        def one(number):
            content = b"%d," % (number % 150) * 500
            return client.put("/api/recordings", params={"name": f"{number}.csv"}, content=content)

        with ThreadPoolExecutor(200) as pool:
            answers = list(pool.map(one, range(200)))
        assert {answer.status_code for answer in answers} == {200, 201}
        assert sum(answer.status_code == 201 for answer in answers) == 150
        assert client.get("/api/recordings").json()["total"] == 150
        with desk.store.read_session() as session:
            assert audit.verify_log(session) == audit.LogCheck(151, audit.head(session)[1])


def test_upload_to_verdict_in_either_database(database, make_desk, examples, classify):
    desk = make_desk(database=database)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        for path in sorted(examples.iterdir()):
            put(client, path).raise_for_status()
        classify(desk)
        case_id = client.get("/api/recordings", params={"state": "open"}).json()["cases"][0]["id"]
        judged(client, case_id, "A")
        assert client.get("/api/measures").json()["deferral"]["total"] == 7
        assert client.get("/api/export/labels.csv").text.count("\n") == 2
        assert client.get("/").status_code == client.get("/measures").status_code == 200
    with desk.store.read_session() as session:
        assert audit.verify_log(session).problem == ""


def test_a_first_verdict_that_is_sent_twice_is_not_a_final_one(client, open_case):
    client.put(f"/api/recordings/{open_case}/claim").raise_for_status()
    verdict = {"label": "N", "stage": "first"}
    assert client.post(f"/api/recordings/{open_case}/verdicts", json=verdict).status_code == 201
    again = client.post(f"/api/recordings/{open_case}/verdicts", json=verdict)
    assert again.status_code == 409 and "first verdict" in again.json()["detail"]
    case = client.get(f"/api/recordings/{open_case}").json()
    assert case["state"] == "open" and [one["stage"] for one in case["verdicts"]] == ["first"]
    final = client.post(f"/api/recordings/{open_case}/verdicts", json={"label": "N", "stage": "final"})
    assert final.status_code == 201 and final.json()["state"] != "open"
