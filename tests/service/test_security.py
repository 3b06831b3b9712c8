"""Access by role, sessions, and security headers."""

import httpx
import pytest
from fastapi.routing import APIRoute

from ecgquorum.cli import main
from ecgquorum.errors import DeskError
from ecgquorum.service.access import ACCESS, PUBLIC, roles_for
from ecgquorum.service.api import ROUTERS
from ecgquorum.service.middleware import COOKIE
from ecgquorum.service.pages import router as pages_router
from ecgquorum.service.store.tokens import Role

from .conftest import give_token, listening, put

SOME_ID = "0" * 32


def routes():
    """Method and path of every route that the desk has."""
    for router in (*ROUTERS, pages_router):
        for route in router.routes:
            assert isinstance(route, APIRoute)
            yield from ((method, route.path) for method in route.methods)
    yield "GET", "/static/{path:path}"


def addressed(path):
    return path.replace("{id}", SOME_ID).replace("{token_id}", "0" * 16).replace("{path:path}", "desk.css")


@pytest.fixture
def guarded(make_desk):
    """A desk with a token for each role: its address, and the tokens."""
    give_to = make_desk()
    tokens = {role: give_token(give_to, f"the {role}", role) for role in Role}
    desk = make_desk()
    assert desk.settings.tokens
    with listening(desk) as address:
        yield desk, address, tokens


def test_the_access_table_lists_every_route():
    assert sorted(routes()) == sorted(ACCESS)
    for method, path in ACCESS:
        assert roles_for(addressed(path))[method] == ACCESS[method, path]


def test_every_route_refuses_without_a_token(guarded):
    _, address, _ = guarded
    with httpx.Client(base_url=address, timeout=60) as client:
        for method, path in routes():
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"{COOKIE}=wrong"}):
                answer = client.request(method, addressed(path), headers=headers, params={"name": "x.npz"})
                if ACCESS[method, path] == PUBLIC:
                    assert answer.status_code in (200, 422), (method, path)
                elif path.startswith("/api/"):
                    assert answer.status_code == 401, (method, path)
                else:
                    assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/login")


def test_every_route_refuses_other_roles(guarded):
    _, address, tokens = guarded
    with httpx.Client(base_url=address, timeout=60) as client:
        for role, token in tokens.items():
            for method, path in routes():
                if path == "/api/events" or ACCESS[method, path] == PUBLIC:
                    continue
                headers = {"Authorization": f"Bearer {token}"}
                answer = client.request(method, addressed(path), headers=headers)
                allowed = role is Role.ADMIN or role in ACCESS[method, path]
                assert (answer.status_code != 403) == allowed, (role, method, path)
                assert answer.status_code < 500


def test_uploaders_see_only_their_own_uploads(guarded, examples):
    desk, address, tokens = guarded
    other = give_token(desk, "another uploader", "uploader")
    with httpx.Client(base_url=address, timeout=60) as client:
        mine, theirs = ({"Authorization": f"Bearer {token}"} for token in (tokens[Role.UPLOADER], other))
        made = put(client, examples / "r0.npz", headers=mine).json()["id"]
        assert client.get(f"/api/recordings/{made}", headers=mine).status_code == 200
        assert client.get(f"/api/recordings/{made}", headers=theirs).status_code == 404
        assert client.get("/api/recordings", headers=theirs).json()["total"] == 0


def test_uploaders_see_no_names_of_readers(guarded, examples, classify):
    desk, address, tokens = guarded
    with httpx.Client(base_url=address, timeout=60) as client:
        mine, readers = ({"Authorization": f"Bearer {tokens[role]}"} for role in (Role.UPLOADER, Role.READER))
        for path in sorted(examples.glob("r*.npz")):
            put(client, path, headers=mine).raise_for_status()
        classify(desk)
        one = client.get("/api/recordings", params={"state": "open"}, headers=readers).json()["cases"][0]["id"]
        case = f"/api/recordings/{one}"
        client.patch(case, json={"assigned_to": "the reader"}, headers=readers).raise_for_status()
        client.put(f"{case}/claim", headers=readers).raise_for_status()
        shown = client.get(case, headers=mine).json()
        assert (shown["claimed_by"], shown["assigned_to"], shown["verdicts"]) == ("a reader", None, [])
        for _ in range(2):
            client.post(f"{case}/verdicts", json={"label": "N"}, headers=readers).raise_for_status()
        shown = client.get(case, headers=mine).json()
        assert [verdict["reader"] for verdict in shown["verdicts"]] == ["reader 1"] * 2
        for path in (case, "/api/recordings", "/", f"/rows?ids={one}"):
            assert "the reader" not in client.get(path, headers=mine).text, path
        assert "the reader" in client.get(case, headers=readers).text


@pytest.mark.parametrize("name", ["worker", "Desk", "command  line", "UNKNOWN", "local", "triage"])
def test_names_of_the_desk_itself_are_no_names_of_tokens(desk, name):
    with pytest.raises(DeskError, match="choose another name"):
        give_token(desk, name, "reader")


def test_a_session_needs_its_own_page_to_change_anything(guarded, examples):
    _, address, tokens = guarded
    with httpx.Client(base_url=address, timeout=60) as client:
        assert client.post("/api/session", json={"token": "wrong"}).status_code == 401
        opened = client.post("/api/session", json={"token": tokens[Role.ADMIN]}, headers={"Origin": address})
        assert opened.status_code == 204
        cookie = opened.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        page = client.get("/upload").text
        csrf = page.partition('name="csrf" content="')[2].partition('"')[0]
        own = {"Origin": address, "X-CSRF-Token": csrf}
        assert put(client, examples / "r0.npz").status_code == 403
        assert put(client, examples / "r0.npz", headers=own | {"X-CSRF-Token": "x" * 64}).status_code == 403
        assert put(client, examples / "r0.npz", headers=own | {"Origin": "http://evil.example"}).status_code == 403
        assert put(client, examples / "r0.npz", headers=own | {"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert put(client, examples / "r0.npz", headers=own).status_code == 201
        assert client.delete("/api/session", headers=own).status_code == 204
        assert client.get("/upload").status_code == 303


def test_a_revoked_token_ends_its_sessions(guarded, monkeypatch):
    desk, address, tokens = guarded
    with httpx.Client(base_url=address, timeout=60) as client:
        client.post("/api/session", json={"token": tokens[Role.READER]})
        assert client.get("/").status_code == 200
        monkeypatch.setattr(
            "sys.argv", ["ecgquorum", "token", "revoke", "the reader", "--data", str(desk.settings.data)]
        )
        with pytest.raises(SystemExit):
            main()
        assert client.get("/").status_code == 303
        bearer = {"Authorization": f"Bearer {tokens[Role.READER]}"}
        assert client.get("/api/recordings", headers=bearer).status_code == 401


def test_without_tokens_other_sites_and_other_hosts_are_refused(client, examples):
    for origin in ("http://evil.example", "null", f"https://{client.base_url.netloc.decode()}.evil.example"):
        assert put(client, examples / "r0.npz", headers={"Origin": origin}).status_code == 403
    same = {"Origin": str(client.base_url).rstrip("/")}
    assert put(client, examples / "r0.npz", headers=same).status_code == 403, "no page, no cookie"
    for host in ("evil.example", "127.0.0.1.evil.example", "[::", ""):
        assert client.get("/", headers={"Host": host}).status_code in (400, 421)
    for host in ("localhost:8000", "127.0.0.1", "[::1]:9"):
        assert client.get("/api/health", headers={"Host": host}).status_code == 200
    assert put(client, examples / "r0.npz").status_code == 201


@pytest.mark.parametrize("host", ["127.0.0.1/login?x=", "127.0.0.1#", "127.0.0.1\\x", "me@127.0.0.1", "127.0.0.1 x"])
def test_a_host_header_is_a_host_and_nothing_more(guarded, host):
    _, address, _ = guarded
    for path in ("/api/admin", "/api/audit", "/api/measures"):
        assert httpx.get(f"{address}{path}", headers={"Host": host}).status_code == 421


def test_responses_have_security_headers(client):
    for path in ("/", "/login", "/api/health", "/static/desk.js", "/nowhere"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY" and "cache-control" in headers


def test_paths_and_methods_that_are_not_there(client):
    assert client.get("/api/nothing").status_code == 404
    assert client.get("/static/../../pyproject.toml").status_code == 404
    assert client.get("/static/%2e%2e/%2e%2e/settings.py").status_code == 404
    refused = client.post("/api/recordings")
    assert refused.status_code == 405 and "PUT" in refused.headers["allow"]
    assert client.get("/api/recordings/not-an-id").status_code == 422
    assert client.get(f"/api/recordings/{SOME_ID}").status_code == 404


def test_an_address_that_others_reach_needs_a_token(make_desk):
    with pytest.raises(DeskError, match="token add"):
        make_desk(host="192.0.2.1")
    give_token(make_desk(), "Ada", "reader")
    assert make_desk(host="192.0.2.1").settings.tokens


def test_the_last_token_revoked_does_not_open_the_desk(make_desk):
    from ecgquorum.service.store import tokens

    desk = make_desk()
    give_token(desk, "Ada", "reader")
    with desk.store.write_session() as session:
        tokens.revoke_token(session, desk.store.now(), "Ada")
    assert make_desk().settings.tokens


@pytest.fixture
def ecgquorum(monkeypatch, capsys):
    def run(*arguments, code=0):
        monkeypatch.setattr("sys.argv", ["ecgquorum", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == code, printed.err
        return printed

    return run


def test_tokens_and_the_log_on_the_command_line(ecgquorum, tmp_path):
    data = ("--data", tmp_path / "desk")
    assert "no folder of a review desk" in ecgquorum("audit", "verify", *data, code=1).err
    token = ecgquorum("token", "add", "Ada", "--role", "reader", *data).out.strip()
    assert token.startswith("ecgq_")
    listed = ecgquorum("token", "list", *data).out
    assert "Ada" in listed and "valid" in listed and token not in listed
    assert "--role: expected one of" in ecgquorum("token", "add", "Bob", "--role", "boss", *data, code=1).err
    ecgquorum("token", "revoke", "Ada", *data)
    assert "revoked" in ecgquorum("token", "list", *data).out
    head = ecgquorum("audit", "verify", *data).out.split()[-1]
    assert head.startswith("2:")
    assert "intact" in ecgquorum("audit", "verify", "--noted", head, *data).out
    assert (
        "differs from the expected one" in ecgquorum("audit", "verify", "--noted", "2:" + "0" * 64, *data, code=1).err
    )
    assert "NUMBER:HASH" in ecgquorum("audit", "verify", "--noted", "2", *data, code=1).err
    import sqlite3

    with sqlite3.connect(tmp_path / "desk" / "desk.sqlite") as connection:
        connection.execute("UPDATE audit SET actor = 'nobody' WHERE number = 1")
    connection.close()
    assert "entry 1 has been changed" in ecgquorum("audit", "verify", *data, code=1).err


def test_without_the_extra_one_line_says_what_to_install(ecgquorum, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "fastapi" else real(name))
    said = ecgquorum("serve", code=1).err
    assert "ecgquorum[serve]" in said and len(said.strip().splitlines()) == 1
