"""Erasing and renaming recordings, quotas, and uploads of what another has sent."""

import httpx
import pytest

from ecgquorum.service.server import open_desk
from ecgquorum.service.store import audit, verification
from ecgquorum.service.store.tokens import Role

from .conftest import give_token, listening, put


@pytest.fixture
def team(database, make_desk):
    """A desk with an admin, a reader and two uploaders: the desk, its address, and the headers of each."""
    give_to = make_desk(database=database)
    names = {"Ann": Role.ADMIN, "Rob": Role.READER, "Una": Role.UPLOADER, "Uwe": Role.UPLOADER}
    headers = {name: {"Authorization": f"Bearer {give_token(give_to, name, role)}"} for name, role in names.items()}
    desk = make_desk(database=database, audit_share=1.0)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield desk, client, headers


def verify(desk):
    with desk.store.read_session() as session:
        assert audit.verify_log(session).problem == ""
    with desk.store.read_session() as session:
        return list(verification.verify_data(session, desk.files.hash_file))


def test_an_erased_recording_leaves_only_a_tombstone(team, examples, classify):
    desk, client, headers = team
    ids = [put(client, examples / f"r{i}.npz", headers=headers["Una"]).json()["id"] for i in range(2)]
    for name in ("pair.hea", "pair.dat"):
        pair = put(client, examples / name, headers=headers["Una"]).json()["id"]
    classify(desk)
    client.put(f"/api/recordings/{ids[0]}/claim", headers=headers["Rob"]).raise_for_status()
    client.post(f"/api/recordings/{ids[0]}/verdicts", json={"label": "N"}, headers=headers["Rob"]).raise_for_status()
    why = {"reason": "consent withdrawn"}
    assert client.delete(f"/api/recordings/{ids[0]}", params=why, headers=headers["Rob"]).status_code == 403
    assert client.delete(f"/api/recordings/{ids[0]}", headers=headers["Ann"]).status_code == 422, "a reason is needed"
    for one in (ids[0], pair):
        assert client.delete(f"/api/recordings/{one}", params=why, headers=headers["Ann"]).json() == {"erased": 1}
        assert client.get(f"/api/recordings/{one}", headers=headers["Ann"]).status_code == 404
    kept = [path for path in (desk.files.folder / "files").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [(examples / "r1.npz").read_bytes()]
    assert [path.name for path in (desk.files.folder / "traces").iterdir()] == [ids[1]]
    entry = client.get("/api/audit", headers=headers["Ann"]).json()["entries"][1]
    assert (entry["action"], entry["actor"], entry["details"]["reason"]) == ("erased", "Ann", "consent withdrawn")
    assert verify(desk) == []
    again = put(client, examples / "r0.npz", headers=headers["Una"])
    assert again.status_code == 201 and verify(desk) == []


def test_an_interrupted_erasure_is_finished_at_the_next_start(team, examples, monkeypatch):
    desk, client, headers = team
    made = put(client, examples / "r0.npz", headers=headers["Una"]).json()["id"]
    monkeypatch.setattr("ecgquorum.service.erasing._remove", lambda *_: None)  # as if killed here
    client.delete(f"/api/recordings/{made}", params={"reason": "x"}, headers=headers["Ann"]).raise_for_status()
    monkeypatch.undo()
    assert any(path.is_file() for path in (desk.files.folder / "files").rglob("*"))
    open_desk(desk.settings).close()
    assert not any(path.is_file() for path in (desk.files.folder / "files").rglob("*"))


def test_unreadable_files_are_purged_and_names_are_not_in_the_log(team, tmp_path, examples, classify):
    desk, client, headers = team
    (tmp_path / "junk.edf").write_bytes(b"junk" * 100)
    junk = put(client, tmp_path / "junk.edf", headers=headers["Una"]).json()["id"]
    good = put(client, examples / "r0.npz", "Mrs Miller.npz", headers=headers["Una"]).json()["id"]
    classify(desk)
    purge = client.delete("/api/recordings", params={"state": "unreadable", "reason": "x"}, headers=headers["Ann"])
    assert purge.json() == {"erased": 1}
    assert client.get(f"/api/recordings/{junk}", headers=headers["Ann"]).status_code == 404
    refused = client.patch(f"/api/recordings/{good}", json={"name": "r.npz"}, headers=headers["Rob"])
    assert refused.status_code == 403
    renamed = client.patch(f"/api/recordings/{good}", json={"name": "../p 17.npz"}, headers=headers["Ann"])
    assert renamed.json()["name"] == "p 17.npz"
    assert "Miller" not in client.get("/api/export/audit.jsonl", headers=headers["Ann"]).text


def test_quotas_of_an_uploader_and_of_the_desk(make_desk, examples):
    size = (examples / "r0.npz").stat().st_size
    names = {name: give_token(make_desk(), name, "uploader") for name in ("Una", "Uwe")}
    desk = make_desk(uploader_quota_bytes=2 * size + 100, quota_bytes=3 * size + 1000)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:

        def send(who, number):
            return put(client, examples / f"r{number}.npz", headers={"Authorization": f"Bearer {names[who]}"})

        assert [send("Una", number).status_code for number in range(2)] == [201, 201]
        refused = send("Una", 2)
        assert refused.status_code == 507 and "Una may store" in refused.json()["detail"]
        assert send("Uwe", 2).status_code == 201
        assert "the desk may store" in send("Uwe", 3).json()["detail"]


def test_uploading_what_another_sent_gives_something_that_works(team, examples, classify):
    desk, client, headers = team
    put(client, examples / "r0.npz", "secret name.npz", headers=headers["Una"])
    again = put(client, examples / "r0.npz", "mine.npz", headers=headers["Uwe"])
    assert again.status_code == 200
    mine = client.get(f"/api/recordings/{again.json()['id']}", headers=headers["Uwe"]).json()
    assert (mine["name"], mine["uploader"], mine["state"]) == ("mine.npz", "Uwe", "waiting")
    listed = client.get("/api/recordings", headers=headers["Uwe"])
    assert listed.json()["total"] == 1 and "secret name" not in listed.text
    assert client.get("/", headers=headers["Uwe"]).text.count("<tr data-id") == 1
    for name in ("pair.hea", "pair.dat"):
        for who in ("Una", "Uwe"):
            last = put(client, examples / name, headers=headers[who]).json()
    assert client.get(f"/api/recordings/{last['id']}", headers=headers["Uwe"]).json()["state"] == "waiting"
    classify(desk)
