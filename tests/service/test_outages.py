"""The database is down, errors are pages, and people come back to where they were."""

import logging
import re
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from .conftest import give_token, listening, needs_chromium, playwright, put

PAGES = ("/", "/measures", "/audit", "/export")


@pytest.fixture
def breakable(postgresql, make_desk):
    """A desk on its own PostgreSQL database, and functions that take it away and bring it back."""
    import psycopg

    name = "breakable"
    with psycopg.connect(postgresql, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name}")
        admin.execute(f"CREATE DATABASE {name}")

        def take_away():
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))

        def bring_back():
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

        desk = make_desk(database=postgresql.removesuffix("/postgres") + f"/{name}")
        yield desk, take_away, bring_back
        desk.close()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_lost_database_is_a_page_and_one_log_line(breakable, examples, caplog):
    desk, take_away, bring_back = breakable
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        assert client.get("/api/health").json() == {"status": "ok", "live": True, "ready": True, "workers": 0}
        assert put(client, examples / "r0.npz").status_code == 201
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            take_away()
            for path in PAGES * 3:
                page = client.get(path)
                assert page.status_code == 503 and page.headers["content-type"].startswith("text/html")
                assert "the desk is not available" in page.text.lower() and "not a medical device" in page.text
            for _ in range(5):
                answer = client.get("/api/recordings")
                assert answer.status_code == 503 and "the database does not respond" in answer.json()["detail"]
            health = client.get("/api/health")
            assert health.status_code == 503 and health.json()["live"] and not health.json()["ready"]
            assert put(client, examples / "r1.npz").status_code == 503
            bring_back()
            assert client.get("/").status_code == 200
            assert client.get("/api/health").json()["ready"]
        lines = [record.getMessage() for record in caplog.records]
        begun, ended = (line.split(":")[0] for line in lines)
        assert (begun, ended) == ("the database does not respond", "the database responds again")
        client.cookies.clear()
        assert put(client, examples / "r1.npz").status_code == 201


def test_error_pages_are_pages_and_api_errors_are_json(client):
    for path, status in (("/nowhere", 404), ("/cases/not-an-id", 404), (f"/cases/{'0' * 32}", 404), ("/?state=x", 404)):
        page = client.get(path)
        assert page.status_code == status and "<h1>Not found</h1>" in page.text, path
        assert "Research use only" in page.text
    assert client.get("/api/nothing").json() == {"detail": "there is no such page or route"}
    assert client.post("/").status_code == 405


def test_text_that_cannot_be_encoded_is_refused(client):
    case = f"/api/recordings/{'0' * 32}/verdicts"
    for body in (b'{"label":"\\ud800"}', b'{"labels":["\\udfff"]}', b'{"kind":"none","comment":"\\ud800"}'):
        answer = client.post(case, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, answer.text


def test_sign_in_accepts_only_paths_of_the_desk(client):
    for back in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        assert 'data-back="/"' in client.get("/login", params={"next": back}).text
    assert 'data-back="/audit?before=7"' in client.get("/login", params={"next": "/audit?before=7"}).text


@needs_chromium
def test_sign_in_returns_to_the_link_one_came_from(make_desk, browser):
    token = give_token(make_desk(), "Ada", "admin")
    with listening(make_desk()) as address:
        page = browser.new_page()
        page.goto(f"{address}/audit?before=9")
        assert parse_qs(urlsplit(page.url).query)["next"] == ["/audit?before=9"]
        page.fill("#token", token)
        page.click("button[type=submit]")
        page.wait_for_url(re.compile(r"/audit\?before=9$"))
        playwright.expect(page.locator("h1")).to_have_text("Audit log")
        page.close()
