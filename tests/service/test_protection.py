"""Modes of files, limits of connections, throttled sign-ins, and the end of tokens and sessions."""

import os
import socket
import stat
import time

import httpx
import pytest

from ecgquorum.service import access_log
from ecgquorum.service.access_log import AccessLog
from ecgquorum.service.connections import GuardedProtocol
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import Store, tokens
from ecgquorum.service.throttle import MAX_FAILURES

from .conftest import give_token, listening


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_and_the_database_are_for_their_owner_only(make_desk, tmp_path):
    before = os.umask(0)
    try:
        desk = make_desk(data=tmp_path / "deep" / "desk")
    finally:
        os.umask(before)
    assert mode(desk.files.folder) == 0o700
    for path in desk.files.folder.glob("desk.sqlite*"):
        assert mode(path) == 0o600
    assert (desk.files.folder / "desk.sqlite").exists()


def test_the_access_log_is_rotated_and_stays_the_owners(tmp_path, monkeypatch):
    monkeypatch.setattr(access_log, "_MAX_BYTES", 400)
    log = AccessLog(tmp_path)
    for number in range(100):
        log.write(path=f"/cases/{number}", status=200)
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["access.log", *(f"access.log.{i}" for i in range(1, 6))]
    assert {mode(path) for path in files} == {0o600}
    assert all(path.stat().st_size <= 400 for path in files)
    last = [line["path"] for line in log.latest(12)]
    assert last == [f"/cases/{number}" for number in range(99, 87, -1)], "also what is in the file before"


def test_a_line_of_the_access_log_that_was_cut_does_not_hide_the_others(tmp_path):
    log = AccessLog(tmp_path)
    log.write(path="/first")
    log.close()
    with (tmp_path / "access.log").open("a") as file:
        file.write('{"path": "/c')  # a full disk, and the next line follows at once
    log.write(path="/lost")
    log.write(path="/last")
    assert [line["path"] for line in log.latest(10)] == ["/last", "/first"]
    log.close()


def test_an_access_log_that_cannot_be_written_is_told_once(tmp_path, caplog, capfd):
    path = tmp_path / "access.log"
    path.symlink_to("/dev/full")
    log = AccessLog(tmp_path)
    for number in range(3):
        log.write(number=number)
    path.unlink()
    log.write(number=9)
    log.close()
    assert len(caplog.records) == 1 and "lines are lost: OSError: [Errno 28]" in caplog.records[0].message
    assert capfd.readouterr().err == "" and log.latest(9) == [{"number": 9}]


def test_slow_headers_are_disconnected(desk, monkeypatch):
    monkeypatch.setattr(GuardedProtocol, "header_s", 0.5)
    with listening(desk) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX: ")
            assert slow.recv(100) == b"", "closed before the headers were complete"
        with socket.create_connection((host, int(port)), timeout=20) as kept:
            request = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            kept.sendall(request)
            answer = b""
            while not answer.endswith(b"}"):  # head and body may come apart
                answer += kept.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 200")
            kept.sendall(request[:30])  # the next request on the same connection
            assert kept.recv(100) == b""


def test_connections_beyond_the_limit_are_refused(desk, monkeypatch):
    monkeypatch.setattr(GuardedProtocol, "max_connections", 3)
    with listening(desk) as address:
        host, port = address.removeprefix("http://").split(":")
        held = [socket.create_connection((host, int(port)), timeout=20) for _ in range(3)]
        with socket.create_connection((host, int(port)), timeout=20) as one_more:
            assert one_more.recv(1000).startswith(b"HTTP/1.1 503")
        for one in held:
            one.close()
        for _ in range(100):
            try:
                assert httpx.get(f"{address}/api/health", timeout=20).status_code == 200
                return
            except (AssertionError, httpx.TransportError):
                time.sleep(0.05)
        pytest.fail("the desk does not serve after the connections were closed")


@pytest.fixture
def guarded(make_desk):
    token = give_token(make_desk(), "Ada", "admin")
    desk = make_desk()
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield desk, client, token


def test_failed_sign_ins_are_logged_and_throttled(guarded):
    _, client, token = guarded
    statuses = [client.post("/api/session", json={"token": "wrong"}).status_code for _ in range(MAX_FAILURES + 5)]
    assert statuses == [401] * MAX_FAILURES + [429] * 5
    refused = client.post("/api/session", json={"token": token})
    assert refused.status_code == 429 and "try again in" in refused.json()["detail"]
    log = client.get("/api/audit", headers={"Authorization": f"Bearer {token}"}).json()["entries"]
    failures = [one for one in log if one["action"] == "sign-in refused"]
    assert len(failures) == MAX_FAILURES and failures[0]["details"] == {"address": "127.0.0.1"}


def test_a_client_cannot_choose_the_address_that_is_throttled(guarded):
    _, client, _ = guarded
    statuses = [
        client.post("/api/session", json={"token": "wrong"}, headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code
        for n in range(MAX_FAILURES + 1)
    ]
    assert statuses == [401] * MAX_FAILURES + [429]


def test_addresses_of_a_proxy_count_where_a_proxy_is_expected(make_desk):
    give_token(make_desk(), "Ada", "admin")
    desk = make_desk(allowed_hosts=("desk.example",))
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        for n in range(MAX_FAILURES + 1):
            headers = {"X-Forwarded-For": f"10.0.0.{n}", "Host": "desk.example"}
            assert client.post("/api/session", json={"token": "wrong"}, headers=headers).status_code == 401


def test_no_error_repeats_a_token(guarded):
    _, client, token = guarded
    for body in ({"token": token + "x" * 300}, {"tokens": token}, {"token": {"a": token}}):
        answer = client.post("/api/session", json=body)
        assert answer.status_code == 422 and token not in answer.text


def test_tokens_expire(store, clock):
    with store.write_session() as session:
        token = tokens.add_token(session, store.now(), "Ada", "reader", store.after(3600))
        secret = tokens.open_session(session, store.now(), store.after(9000), token)
    with store.read_session() as session:
        assert tokens.actor_of_token(session, store.now(), token).name == "Ada"
    clock.passes(3601)
    with store.write_session() as session:
        assert tokens.actor_of_token(session, store.now(), token) is None
        assert tokens.actor_of_session(session, store.now(), "", secret) is None
        assert tokens.open_session(session, store.now(), store.after(9000), token) is None


def test_an_idle_session_ends_and_automatic_requests_do_not_extend_it(guarded, clock, monkeypatch):
    desk, client, token = guarded
    monkeypatch.setattr(desk.store, "_clock", clock)
    client.post("/api/session", json={"token": token}, headers={"Origin": str(client.base_url)}).raise_for_status()
    for _ in range(3):
        clock.passes(desk.settings.idle_s * 0.6)
        assert client.get("/").status_code == 200  # a person: extends it
    clock.passes(desk.settings.idle_s * 0.6)
    assert client.get("/rows", headers={"X-Automatic": "yes"}).status_code == 200
    clock.passes(desk.settings.idle_s * 0.6)
    assert client.get("/").status_code == 303


def test_an_event_stream_ends_when_its_token_is_revoked(guarded):
    desk, client, _ = guarded
    reader = give_token(desk, "Bob", "reader")
    with client.stream("GET", "/api/events", headers={"Authorization": f"Bearer {reader}"}) as events:
        lines = events.iter_lines()
        assert next(lines) == "event: changed"
        store = Store(Settings(data=desk.settings.data, model="").database_url)
        with store.write_session() as session:
            tokens.revoke_token(session, store.now(), "Bob")
        store.close()
        assert sum(1 for _ in lines) < 50  # it ends


def test_slow_bodies_are_disconnected(desk, monkeypatch):
    monkeypatch.setattr("ecgquorum.service.middleware._BODY_S", 1.0)
    with listening(desk) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            head = "POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            slow.sendall(f"{head}Content-Length: 5000\r\n\r\n".encode())
            slow.settimeout(0.2)
            for _ in range(100):
                slow.sendall(b" ")
                try:
                    assert slow.recv(1000).startswith(b"HTTP/1.1 400")
                    return
                except TimeoutError:
                    continue
            pytest.fail("a body of one byte after the other is read for ever")


@pytest.mark.parametrize("last", [b"\xb2", b"9" * 5000, b"-1", b"x"])
def test_a_strange_last_event_is_ignored(guarded, last):
    _, client, token = guarded
    headers = {b"Authorization": f"Bearer {token}".encode(), b"Last-Event-ID": last}
    with client.stream("GET", "/api/events", headers=headers) as events:
        assert events.status_code == 200 and next(events.iter_lines()) == "event: changed"
