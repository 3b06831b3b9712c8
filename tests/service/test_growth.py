"""Work that does not grow with the desk: statements per page and per export; and live ends of claims."""

import threading
from contextlib import contextmanager

import httpx
import pytest
from sqlalchemy import event

from ecgquorum.service import desk_metrics, metrics_cache
from ecgquorum.service.exports import labels_csv, stream_fhir
from ecgquorum.service.metrics_cache import current_metrics
from ecgquorum.service.server import warm_up
from ecgquorum.service.store import audit

from .conftest import listening, needs_chromium, playwright, put


@contextmanager
def counting(desk):
    """The statements that the database gets meanwhile."""
    statements = []

    def note(_, __, statement, *___):
        if statement != "BEGIN":
            statements.append(statement)

    event.listen(desk.store._engine, "before_cursor_execute", note)
    yield statements
    event.remove(desk.store._engine, "before_cursor_execute", note)


def close_cases(client, ids):
    for one in ids:
        client.put(f"/api/recordings/{one}/claim").raise_for_status()
        for _ in range(2):
            client.post(f"/api/recordings/{one}/verdicts", json={"label": "N"}).raise_for_status()


@pytest.fixture
def growing(make_desk, examples, classify):
    desk = make_desk(audit_share=1.0)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        for path in sorted(examples.glob("r*.npz")):
            put(client, path).raise_for_status()
        classify(desk)
        yield desk, client, [one["id"] for one in client.get("/api/recordings").json()["cases"]]


def export_statements(desk):
    with counting(desk) as statements, desk.store.read_session() as session:
        n_lines = sum(text.count("\n") for text in labels_csv(session))
        size = sum(len(piece) for piece in stream_fhir(session, desk))
    return n_lines, size, len(statements)


def test_exports_need_as_many_statements_for_many_cases_as_for_one(growing):
    desk, client, ids = growing
    close_cases(client, ids[:1])
    one = export_statements(desk)
    close_cases(client, ids[1:])
    many = export_statements(desk)
    assert (one[0], many[0]) == (2, 7) and many[1] > one[1]
    assert many[2] == one[2]


def test_exports_are_sent_in_pieces(growing):
    desk, client, ids = growing
    close_cases(client, ids)
    with desk.store.read_session() as session:
        assert len(list(stream_fhir(session, desk))) > len(ids)
    with client.stream("GET", "/api/export/cohort.zip") as answer:
        assert "content-length" not in answer.headers and sum(map(len, answer.iter_bytes())) > 1000


def test_metrics_and_the_check_of_the_log_read_only_what_is_new(growing):
    desk, client, ids = growing
    first = current_metrics(desk)
    with counting(desk) as statements:
        assert current_metrics(desk) is first
    assert len(statements) == 1
    close_cases(client, ids[:1])
    assert current_metrics(desk).counts["open"] == first.counts["open"] - 1
    with desk.store.read_session() as session:
        before = desk.log_check.update(session).n_entries
    with desk.store.write_session() as session:
        audit.append(session, desk.store.now(), "me", "did")
        session.connection().exec_driver_sql("UPDATE audit SET actor = 'you' WHERE number = 1")
    with desk.store.read_session() as session:
        assert desk.log_check.update(session).n_entries == before + 1, "old entries are not read again"
        assert audit.verify_log(session).problem == "entry 1 has been changed"


def test_a_header_of_several_segments_is_refused_at_once(client, tmp_path):
    (tmp_path / "long.hea").write_text("long/2 1 360 2000\nlong_a 1000\nlong_b 1000\n")
    refused = put(client, tmp_path / "long.hea")
    assert refused.status_code == 422 and "multi-segment" in refused.json()["detail"]
    assert client.get("/api/recordings").json()["total"] == 0


@needs_chromium
def test_the_end_of_a_claim_is_seen_without_reloading(growing, page, clock, monkeypatch):
    desk, client, ids = growing
    monkeypatch.setattr(desk.store, "_clock", clock)
    client.put(f"/api/recordings/{ids[0]}/claim").raise_for_status()
    page.goto(str(client.base_url))
    row = page.locator(f"tr[data-id='{ids[0]}']")
    playwright.expect(row).to_contain_text("claimed by local")
    clock.passes(desk.settings.claim_s + 1)
    playwright.expect(row).not_to_contain_text("claimed by local")
    log = client.get("/api/audit").json()["entries"]
    assert (log[0]["action"], log[0]["actor"], log[0]["subject"]) == ("claim expired", "desk", ids[0])


@needs_chromium
def test_prints_carry_the_notice_and_words_have_their_spaces(make_desk, page, classify, tmp_path):
    from ecgquorum import simulate
    from ecgquorum.recordings import write

    recording = simulate("N", seed=3, seconds=6, leads=("ECG",)).recording
    recording.signal[0, 300:1100] = 0.0
    write(recording, tmp_path / "flat.npz")
    desk = make_desk(audit_share=1.0)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        made = put(client, tmp_path / "flat.npz").json()["id"]
        classify(desk)
        page.goto(address)
        quality = page.inner_text(f"tr[data-id='{made}'] td >> nth=3")
        assert quality.startswith("doubtful: ") and "doubtful:" in quality
        page.goto(f"{address}/cases/{made}")
        playwright.expect(page.locator("#viewer canvas").first).to_be_visible()
        page.emulate_media(media="print")
        playwright.expect(page.locator(".banner")).to_be_visible()
        playwright.expect(page.locator(".top")).to_be_hidden()


def test_a_page_does_not_wait_for_metrics_that_take_long(growing, monkeypatch):
    desk, client, ids = growing
    monkeypatch.setattr(metrics_cache, "_QUICK_S", -1.0)  # whatever they take is long
    before = current_metrics(desk)
    close_cases(client, ids[:1])
    started, may_end = threading.Event(), threading.Event()

    def compute_slowly(*arguments):
        started.set()
        assert may_end.wait(60)
        return desk_metrics.compute_metrics(*arguments)

    monkeypatch.setattr(metrics_cache, "compute_metrics", compute_slowly)
    metrics, is_current = metrics_cache.recent_metrics(desk)
    assert metrics is before and not is_current and started.wait(60)
    assert "reload in a moment" in client.get("/measures").text, "it does not wait either"
    may_end.set()
    with desk.computing:  # the thread has ended
        metrics, is_current = metrics_cache.recent_metrics(desk)
    assert is_current and metrics.counts["open"] == before.counts["open"] - 1


def test_the_audit_page_checks_a_long_log_in_parts(growing, monkeypatch):
    desk, client, _ = growing
    monkeypatch.setattr(audit, "CHECKED_AT_ONCE", 5)
    assert "valid up to entry 5;" in client.get("/audit").text
    assert "valid up to entry 10;" in client.get("/audit").text
    warm_up(desk)
    assert "The hash chain is valid: " in client.get("/audit").text
