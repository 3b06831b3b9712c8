"""The admin page: tokens, claims, disk, queue, workers, and the access log."""

import time

import httpx
import pytest

from ecgquorum.preprocessing.quality import Finding, Quality, Severity
from ecgquorum.service.templating import format_bytes, format_length
from ecgquorum.service.views import summarise_findings

from .conftest import give_token, listening, needs_chromium, playwright, put


@needs_chromium
def test_an_admin_frees_claims_and_adds_and_revokes_tokens(make_desk, page, examples, classify):
    token = give_token(make_desk(), "Ann", "admin")
    desk = make_desk(audit_share=1.0)
    with listening(desk) as address:
        page.goto(f"{address}/admin")
        page.fill("#token", token)
        page.click("button[type=submit]")
        page.wait_for_url("**/admin")
        page.fill("#token-name", "Rob")
        page.click("#new-token button")
        secret = page.locator("#new-secret code")
        playwright.expect(secret).to_contain_text("ecgq_")
        rob = httpx.Client(base_url=address, timeout=60, headers={"Authorization": f"Bearer {secret.inner_text()}"})
        ann = httpx.Client(base_url=address, timeout=60, headers={"Authorization": f"Bearer {token}"})
        case = put(ann, examples / "r0.npz").json()["id"]
        classify(desk)
        rob.put(f"/api/recordings/{case}/claim").raise_for_status()
        free = page.locator(f"button[data-free='{case}']")
        free.click()  # it comes by itself
        playwright.expect(free).to_have_count(0)
        assert ann.get(f"/api/recordings/{case}").json()["claimed_by"] is None
        page.click("button[aria-label='Revoke the token of Rob']")
        playwright.expect(page.locator("#toast")).to_have_text("The token is revoked.")
        assert rob.get("/api/recordings").status_code == 401
        status = ann.get("/api/admin").json()
        assert status["files_bytes"] == (examples / "r0.npz").stat().st_size and status["event_streams"] == 1
        assert [(one["name"], one["state"]) for one in status["tokens"]] == [("Ann", "valid"), ("Rob", "revoked")]
        log = ann.get("/api/admin/access").json()
        assert any(one["who"] == "Rob" and one["path"].endswith("/claim") and one["status"] == 200 for one in log)
        assert any(one["who"] is None and one["status"] == 401 for one in log)
        assert secret.inner_text() not in (desk.settings.data / "access.log").read_text()
        for client in (rob, ann):
            client.close()


@needs_chromium
def test_a_hidden_tab_has_no_stream(desk, page, client):
    page.goto(str(client.base_url))

    def wait_for(count):
        for _ in range(200):
            if client.get("/api/admin").json()["event_streams"] == count:
                return
            time.sleep(0.1)
        pytest.fail(f"expected {count} event streams")

    wait_for(1)
    page.evaluate(
        """() => { Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
        document.dispatchEvent(new Event("visibilitychange")); }"""
    )
    wait_for(0)
    page.evaluate(
        """() => { delete document.visibilityState; document.dispatchEvent(new Event("visibilitychange")); }"""
    )
    wait_for(1)


@pytest.mark.slow
def test_two_workers_classify_each_recording_once(make_desk, examples):
    desk = make_desk(workers=2)
    with listening(desk, with_worker=True) as address, httpx.Client(base_url=address, timeout=60) as client:
        for path in sorted(examples.glob("r*.npz")):
            put(client, path).raise_for_status()
        for _ in range(1200):
            status = client.get("/api/admin").json()
            if status["waiting"] == 0:
                break
            time.sleep(0.1)
        assert status["waiting"] == 0 and status["workers"] == status["workers_wanted"] == 2
        log = client.get("/api/audit", params={"limit": 1000}).json()["entries"]
        assert sum(one["action"] == "classified" for one in log) == 6


def test_findings_on_many_leads_are_one_line():
    noise = [Finding("noise", Severity.DOUBTFUL, f"{i} %", f"V{i}") for i in range(1, 13)]
    quality = Quality((*noise, Finding("short", Severity.UNREADABLE, "1 s")))
    assert summarise_findings(quality) == ["short: 1 s", "noise on 12 leads"]
    assert summarise_findings(Quality((noise[0],))) == ["noise on V1: 1 %"]


def test_lengths_and_sizes_in_words():
    assert [format_length(s) for s in (6.0, 8.54, 86400.0, 1800)] == ["6 s", "8.5 s", "1 day", "30 min"]
    assert [format_bytes(n) for n in (12, 2048, 5 << 30)] == ["12 B", "2.0 KiB", "5.0 GiB"]
