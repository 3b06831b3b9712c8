"""Pages that stay open: what they do by themselves, and what others change meanwhile."""

import httpx
import pytest

from ecgquorum.service.store import tokens

from .conftest import PATIENCE_MS, give_token, listening, needs_chromium, playwright, put

pytestmark = needs_chromium
expect = playwright.expect if playwright else None


@pytest.fixture
def served(make_desk, examples, classify):
    """A desk whose claims last for three seconds: its address, a client, and the ids of its open cases in order."""
    desk = make_desk(audit_share=1.0, claim_s=3.0)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        for path in sorted(examples.glob("r*.npz")):
            put(client, path).raise_for_status()
        classify(desk)
        ids = [case["id"] for case in client.get("/api/recordings", params={"state": "open"}).json()["cases"]]
        yield address, client, ids


@pytest.fixture
def guarded(make_desk):
    """A desk with tokens: the desk, its address, and the tokens by name."""
    secrets = {name: give_token(make_desk(), name, role) for name, role in (("Ada", "reader"), ("Una", "uploader"))}
    desk = make_desk()
    with listening(desk) as address:
        yield desk, address, secrets


@pytest.fixture
def signed_in(browser):
    """Open a page with a session of its own; refused requests are part of these tests."""
    made = []

    def sign_in(address, token, script=""):
        context = browser.new_context()
        context.set_default_timeout(PATIENCE_MS)
        made.append(context)
        if script:
            context.add_init_script(script)
        page = context.new_page()
        page.goto(f"{address}/login")
        page.fill("#token", token)
        page.click("button[type=submit]")
        page.wait_for_url(f"{address}/")
        return page

    yield sign_in
    for context in made:
        context.close()


def test_a_page_that_is_left_open_does_not_extend_its_session(served, page):
    address, _, ids = served
    claims = []
    page.on("request", lambda one: claims.append(one) if (one.method, one.url[-6:]) == ("PUT", "/claim") else None)
    page.goto(f"{address}/cases/{ids[0]}")
    expect(page.locator("[data-label]").first).to_be_enabled()
    while len(claims) < 3:
        page.wait_for_timeout(200)
    assert ["x-automatic" in one.headers for one in claims[:3]] == [False, True, True]


@pytest.mark.parametrize("script", ["", "delete window.SharedWorker"], ids=["shared", "own stream"])
def test_a_page_goes_to_the_sign_in_when_its_session_ends(guarded, signed_in, script):
    desk, address, secrets = guarded
    page = signed_in(address, secrets["Ada"], script)
    page.goto(f"{address}/?sort=name")
    page.wait_for_timeout(500)  # the stream is open
    with desk.store.write_session() as session:
        tokens.revoke_token(session, desk.store.now(), "Ada")
    page.wait_for_url(f"{address}/login?next=%2F%3Fsort%3Dname")


def test_a_link_of_another_site_leads_to_its_page_with_a_session_and_to_the_sign_in_without(guarded, signed_in):
    """Such a link does not send the cookie, which is SameSite=Strict."""
    desk, address, secrets = guarded
    page = signed_in(address, secrets["Ada"])
    page.goto(f"data:text/html,<a href='{address}/measures?x=1'>a letter</a>")
    page.click("a")
    expect(page.locator("h1")).to_have_text("Metrics")
    assert page.url == f"{address}/measures?x=1"
    with desk.store.write_session() as session:
        tokens.revoke_token(session, desk.store.now(), "Ada")
    page.goto(f"data:text/html,<a href='{address}/measures?x=1'>a letter</a>")
    page.click("a")
    page.wait_for_url(f"{address}/login?next=%2Fmeasures%3Fx%3D1")


def test_an_uploader_gets_a_link_that_works(guarded, signed_in, examples):
    _, address, secrets = guarded
    page = signed_in(address, secrets["Una"])
    page.goto(f"{address}/upload")
    page.set_input_files("#files", examples / "r0.npz")
    page.locator("#uploads a").click()
    expect(page.locator("tr[data-id]")).to_contain_text("r0.npz")


def test_saving_changes_only_what_the_reader_changed(served, page):
    address, client, ids = served
    page.goto(f"{address}/cases/{ids[0]}")
    page.click("summary:has-text('Manage')")
    client.patch(f"/api/recordings/{ids[0]}", json={"urgent": True}).raise_for_status()
    page.select_option("#assigned", "local")
    page.click("#manage button[type=submit]")
    expect(page.locator("#toast")).to_contain_text("Saved")
    case = client.get(f"/api/recordings/{ids[0]}").json()
    assert (case["urgent"], case["assigned_to"]) == (True, "local")


def test_a_page_of_the_worklist_is_filled_when_a_case_leaves_it(served, page):
    address, client, ids = served
    page.goto(f"{address}/?state=open&limit=2")
    expect(page.locator("tr[data-id]")).to_have_count(2)
    client.put(f"/api/recordings/{ids[0]}/claim").raise_for_status()
    for _ in range(2):
        client.post(f"/api/recordings/{ids[0]}/verdicts", json={"label": "N"}).raise_for_status()
    expect(page.locator("tr[data-id]").nth(1)).to_have_attribute("data-id", ids[2])
    expect(page.locator("tr[data-id]").first).to_have_attribute("data-id", ids[1])


def test_a_page_does_not_take_back_a_claim_that_an_administrator_freed(served, page):
    address, client, ids = served
    page.goto(f"{address}/cases/{ids[0]}")
    expect(page.locator("[data-label]").first).to_be_enabled()
    client.delete(f"/api/admin/claims/{ids[0]}").raise_for_status()
    expect(page.locator("#toast")).to_contain_text("an administrator ended your claim")
    expect(page.locator("[data-label]").first).to_be_disabled()
    assert client.get(f"/api/recordings/{ids[0]}").json()["claimed_by"] is None
    page.reload()
    expect(page.locator("[data-label]").first).to_be_enabled()
