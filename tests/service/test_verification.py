"""The stored data agree with the audit log, and a changed label or byte is found and named; the log stays blind."""

import hashlib

import httpx
import pytest
from sqlalchemy import delete, select, update

from ecgquorum.service.store import audit, verification
from ecgquorum.service.store.tables import AuditRow, FileRow, RecordingRow, ResultRow, VerdictRow

from .conftest import listening, put


@pytest.fixture
def used(database, make_desk, examples, classify):
    """A desk with closed, withdrawn, reopened and open cases."""
    desk = make_desk(database=database, audit_share=1.0)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        for path in sorted(examples.iterdir()):
            put(client, path).raise_for_status()
        classify(desk)
        ids = [one["id"] for one in client.get("/api/recordings", params={"state": "open"}).json()["cases"]]
        for place, one in enumerate(ids[:4]):
            client.put(f"/api/recordings/{one}/claim").raise_for_status()
            verdict = {"label": "N", "comment": "p waves?"} if place else {"kind": "unclear"}
            for _ in range(2):
                client.post(f"/api/recordings/{one}/verdicts", json=verdict).raise_for_status()
        client.delete(f"/api/recordings/{ids[2]}/verdicts").raise_for_status()
        client.post(f"/api/recordings/{ids[3]}/reopen", json={"reason": "test"}).raise_for_status()
    return desk, ids


def problems(desk):
    with desk.store.read_session() as session:
        return list(verification.verify_data(session, desk.files.hash_file))


def change(desk, statement):
    with desk.store.write_session() as session:
        session.execute(statement)
    return problems(desk)


def test_an_unchanged_desk_has_no_problems_and_each_change_is_named(used):
    desk, ids = used
    assert problems(desk) == []
    (found,) = change(desk, update(VerdictRow).where(VerdictRow.recording_id == ids[2]).values(label="A"))
    assert found == f"the first verdict of local on {ids[2]} has been changed: the audit log has N, not A"
    found = change(desk, update(VerdictRow).where(VerdictRow.recording_id == ids[2]).values(label="N", comment="no"))
    assert "its classes or its comment" in found[0] and len(found) == 1
    found = change(desk, delete(VerdictRow).where(VerdictRow.recording_id == ids[2]))
    assert found == [f"the first verdict of local on {ids[2]} is missing"]


def test_a_changed_result_or_state_is_found(used):
    desk, ids = used
    with desk.store.write_session() as session:
        row = session.scalars(select(ResultRow).where(ResultRow.recording_id == ids[0])).one()
        row.document = row.document | {"seconds": 7.5}
    assert [one for one in problems(desk) if ids[0] in one and "has been changed" in one]
    found = change(desk, update(ResultRow).where(ResultRow.recording_id == ids[1]).values(label="~"))
    assert any(f"the result of {ids[1]}" in one and "class" in one for one in found)
    found = change(desk, update(RecordingRow).where(RecordingRow.id == ids[0]).values(state="certain"))
    assert f"the state of {ids[0]} has been changed: the audit log has amended, not certain" in found


def test_an_open_case_that_was_hidden_or_removed_is_found(used):
    desk, ids = used
    with desk.store.read_session() as session:
        rows = {one: session.get_one(RecordingRow, one) for one in ids[4:]}
    deferred = next(one for one, row in rows.items() if row.state == "deferred")
    found = change(desk, update(RecordingRow).where(RecordingRow.id == deferred).values(state="certain"))
    assert found == [f"the state of {deferred} has been changed: the audit log has deferred, not certain"]
    found = change(desk, update(RecordingRow).where(RecordingRow.id == deferred).values(state="merged"))
    assert found == [f"the state of {deferred} has been changed: the audit log has deferred, not merged"]
    found = change(desk, update(RecordingRow).where(RecordingRow.id == deferred).values(state="deferred", audited=True))
    assert found == [f"whether {deferred} was drawn at random has been changed"]
    for table in (VerdictRow, ResultRow, FileRow):
        change(desk, delete(table).where(table.recording_id == deferred))
    found = change(desk, delete(RecordingRow).where(RecordingRow.id == deferred))
    assert f"recording {deferred} is missing" in found


def test_a_changed_or_missing_byte_is_found(used):
    desk, ids = used
    with desk.store.read_session() as session:
        first, second = (
            session.scalars(select(FileRow.sha256).where(FileRow.recording_id == one)).first() for one in ids[:2]
        )
    path = desk.files.path(first)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    desk.files.path(second).unlink()
    found = problems(desk)
    assert f"the file {first} of {ids[0]} has been changed" in found
    assert f"the file {second} of {ids[1]} is missing" in found and len(found) == 2


def test_the_log_hides_answers_and_verdicts_of_open_cases(used):
    desk, ids = used
    closed, reopened = ids[0], ids[3]
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        entries = client.get("/api/audit", params={"limit": 1000}).json()["entries"]
        exported = client.get("/api/export/audit.jsonl").text
        page = client.get("/audit").text
    hidden = [one for one in entries if one["subject"] == reopened and one["action"] in ("classified", "final verdict")]
    assert len(hidden) == 2 and all(one["details"] == {"hidden": "until the case is closed"} for one in hidden)
    shown = [one for one in entries if one["subject"] == closed and one["action"] == "classified"]
    assert shown[0]["details"]["class"] in "NAO~"
    assert exported.count('"hidden"') == page.count("hidden until") > 2


def test_the_hash_of_a_hidden_verdict_cannot_be_guessed(used):
    """The hash of an entry is public, and a verdict has few possible values: without a salt all could be tried."""
    desk, ids = used
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        entries = client.get("/api/audit", params={"limit": 1000}).json()["entries"]
    hidden = [one for one in entries if one["subject"] in ids[2:] and "verdict" in one["action"]]
    assert {one["action"] for one in hidden} == {"first verdict", "final verdict", "verdict withdrawn"}
    comment = {"comment_sha256": hashlib.sha256(b"p waves?").hexdigest()}
    for one in hidden:
        guesses = [
            {"label": label, "state": state, "round": 1, "kind": "class", "labels": [label]} | more
            for label in "NAO~"
            for state in ("deferred", "certain", "confirmed", "amended")
            for more in ({}, comment)
        ]
        guesses += [{"stage": "final", "label": label, "round": 1} for label in "NAO~"]
        for guess in guesses:
            assert audit.entry_sha256(AuditRow(**one | {"details": guess})) != one["sha256"]
