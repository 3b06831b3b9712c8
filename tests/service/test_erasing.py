"""Erasing and renaming recordings, quotas, and uploads of what another has sent."""

import httpx
import pytest

from ecgquorum.service.erasing import erase
from ecgquorum.service.server import open_desk
from ecgquorum.service.store import audit, verification
from ecgquorum.service.store.tokens import Role
from ecgquorum.triage.decide import decide

from .conftest import give_token, listening, needs_chromium, playwright, put


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
    monkeypatch.setattr("ecgquorum.service.erasing.remove_orphans", lambda *_: None)  # as if killed here
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


def test_a_recording_that_others_were_merged_into_twice_can_be_erased(team, examples, tmp_path):
    """Una's files became one recording, which became a part of Uwe's."""
    desk, client, headers = team
    header = b"two 2 500 100\ntwo-a.dat 16 1000/mV 16 0 0 0 0 I\ntwo-b.dat 16 1000/mV 16 0 0 0 0 II\n"
    files = {"two.hea": header, "two-a.dat": b"a" * 200, "two-b.dat": b"b" * 200}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in ("two-a.dat", "two-b.dat"):
        put(client, tmp_path / name, headers=headers["Una"]).raise_for_status()
    for name in files:
        kept = put(client, tmp_path / name, headers=headers["Uwe"]).json()["id"]
    assert put(client, tmp_path / "two.hea", headers=headers["Una"]).json()["id"] == kept
    erased = client.delete(f"/api/recordings/{kept}", params={"reason": "x"}, headers=headers["Ann"])
    assert erased.status_code == 200
    assert not any(path.is_file() for path in (desk.files.folder / "files").rglob("*"))
    assert verify(desk) == []


def test_a_renamed_recording_stays_visible_to_all_who_sent_it(team, examples):
    _, client, headers = team
    made = put(client, examples / "r0.npz", "Miller.npz", headers=headers["Una"]).json()["id"]
    put(client, examples / "r0.npz", "Mrs Miller.npz", headers=headers["Uwe"]).raise_for_status()
    client.patch(f"/api/recordings/{made}", json={"name": "p17.npz"}, headers=headers["Ann"]).raise_for_status()
    for who in ("Una", "Uwe"):
        assert client.get(f"/api/recordings/{made}", headers=headers[who]).json()["name"] == "p17.npz"


def test_refused_files_leave_nothing_on_the_disk(team, examples):
    desk, client, headers = team
    segments = b"many/2 1 500 100\none 50\ntwo 50\n"
    for name, content in (("no-suffix", b"x" * 5000), ("many.hea", segments)):
        refused = client.put("/api/recordings", params={"name": name}, content=content, headers=headers["Una"])
        assert refused.status_code in (415, 422)
    known = put(client, examples / "r0.npz", headers=headers["Una"]).json()["id"]
    assert put(client, examples / "r0.npz", "no-suffix", headers=headers["Una"]).status_code == 415
    assert [path.name for path in (desk.files.folder / "files").glob("??/*")] == [
        client.get("/api/audit", headers=headers["Ann"]).json()["entries"][0]["details"]["sha256"]
    ], "only the file of a recording stays, also when the same bytes are refused under another name"
    assert client.get(f"/api/recordings/{known}", headers=headers["Una"]).status_code == 200
    assert verify(desk) == []


def test_a_quota_holds_for_bodies_of_unknown_length(make_desk, examples):
    size = (examples / "r0.npz").stat().st_size
    token = give_token(make_desk(), "Una", "uploader")
    desk = make_desk(uploader_quota_bytes=size + size // 2)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:

        def send(number):
            content = (examples / f"r{number}.npz").read_bytes()
            pieces = (content[start : start + 1000] for start in range(0, len(content), 1000))
            headers = {"Authorization": f"Bearer {token}"}
            return client.put("/api/recordings", params={"name": f"r{number}.npz"}, content=pieces, headers=headers)

        assert [send(number).status_code for number in (0, 1, 0)] == [201, 507, 200]
        assert len(list((desk.files.folder / "files").glob("??/*"))) == 1


def test_a_recording_that_is_erased_while_it_is_classified_leaves_no_samples(team, examples, classify, monkeypatch):
    desk, client, headers = team
    made = put(client, examples / "r0.npz", headers=headers["Una"]).json()["id"]

    def erase_meanwhile(*arguments):
        client.delete(f"/api/recordings/{made}", params={"reason": "x"}, headers=headers["Ann"]).raise_for_status()
        return decide(*arguments)

    monkeypatch.setattr("ecgquorum.service.worker.decide", erase_meanwhile)
    classify(desk)
    assert list((desk.files.folder / "traces").iterdir()) == []


def test_a_purge_spares_what_was_completed_meanwhile(team, examples, monkeypatch):
    _, client, headers = team
    made = put(client, examples / "pair.hea", headers=headers["Una"]).json()["id"]

    def complete_first(*arguments, **options):
        assert put(client, examples / "pair.dat", headers=headers["Una"]).json()["state"] == "waiting"
        return erase(*arguments, **options)

    monkeypatch.setattr("ecgquorum.service.api.administration.erase", complete_first)
    purged = client.delete("/api/recordings", params={"state": "incomplete", "reason": "x"}, headers=headers["Ann"])
    assert purged.json() == {"erased": 0}
    assert client.get(f"/api/recordings/{made}", headers=headers["Una"]).json()["state"] == "waiting"


@needs_chromium
def test_an_admin_purges_and_erases_on_the_pages(desk, client, page, examples, classify, tmp_path):
    (tmp_path / "junk.edf").write_bytes(b"junk" * 100)
    put(client, tmp_path / "junk.edf").raise_for_status()
    made = put(client, examples / "r0.npz").json()["id"]
    classify(desk)
    page.goto(f"{client.base_url}/admin")
    page.click("#purge button")
    assert client.get("/api/recordings").json()["total"] == 2, "nothing without a reason"
    page.fill("#purge-reason", "no recordings")
    page.click("#purge button")
    playwright.expect(page.locator("#toast")).to_have_text("1 recording erased.")
    page.goto(f"{client.base_url}/cases/{made}")
    page.click("summary:has-text('Manage')")
    page.fill("#erase-reason", "consent withdrawn")
    page.click("#erase button")
    page.wait_for_url(f"{client.base_url}/")
    playwright.expect(page.locator("tr[data-id]")).to_have_count(0)
    assert client.get("/api/recordings").json()["total"] == 0 and verify(desk) == []
