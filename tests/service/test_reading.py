"""Reading cases in Chromium: from one to the next, live changes in many tabs, slips of the hand."""

import re

import pytest

from .conftest import listening, needs_chromium, playwright, put

pytestmark = needs_chromium
expect = playwright.expect if playwright else None


@pytest.fixture
def served(make_desk, examples, classify):
    """A desk with at least four open cases: its address, the desk, and their ids in the order of the worklist."""
    desk = make_desk(audit_share=1.0)
    import httpx

    with listening(desk) as address:
        with httpx.Client(base_url=address, timeout=60) as client:
            for path in sorted(examples.glob("r*.npz")):
                put(client, path).raise_for_status()
            classify(desk)
            ids = [case["id"] for case in client.get("/api/recordings", params={"state": "open"}).json()["cases"]]
        assert len(ids) == 6
        yield address, desk, ids


def case_of(page):
    return re.search(r"/cases/([0-9a-f]{32})", page.url)[1]


def press(page, key):
    """Press a key that leads to another case."""
    here = page.url
    page.keyboard.press(key)
    page.wait_for_url(lambda url: url != here)
    expect(page.locator("[data-label]").first).to_be_enabled()


def test_next_goes_through_all_cases_of_the_filter_in_order(served, page):
    address, _, ids = served
    page.goto(f"{address}/cases/{ids[0]}?state=open")
    seen = [case_of(page)]
    for key in "jjsjj":
        press(page, key)
        seen.append(case_of(page))
    assert seen == ids
    press(page, "j")
    assert case_of(page) == ids[0]
    press(page, "k")
    assert case_of(page) == ids[-1] and "state=open" in page.url


def test_j_goes_on_to_the_next_page_of_the_worklist(served, page):
    address, _, ids = served
    page.goto(f"{address}/?state=open&limit=2")
    for place in range(3):
        page.keyboard.press("j")
        expect(page.locator("tr[aria-selected=true]")).to_have_attribute("data-id", ids[place])
    assert "offset=2" in page.url
    page.keyboard.press("k")
    expect(page.locator("tr[aria-selected=true]")).to_have_attribute("data-id", ids[1])


def test_eight_tabs_share_one_stream_and_a_change_replaces_rows_only(served, page):
    address, _, ids = served
    tabs = [page, *(page.context.new_page() for _ in range(7))]
    for tab in tabs:
        tab.goto(address)  # with a stream each, the seventh would wait for ever
        expect(tab.locator(f"tr[data-id='{ids[0]}']")).to_be_visible()
    asked = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(address)))
    page.evaluate("document.querySelector('h1').dataset.mark = 'kept'")
    case = tabs[-1]
    case.goto(f"{address}/cases/{ids[0]}")
    for tab in tabs[:-1]:
        expect(tab.locator(f"tr[data-id='{ids[0]}']")).to_contain_text("claimed by local")
    assert asked and all(path.startswith("/rows?") for path in asked)
    assert page.evaluate("document.querySelector('h1').dataset.mark") == "kept"


def test_enter_held_down_gives_one_verdict(served, page):
    address, _, ids = served
    page.goto(f"{address}/cases/{ids[0]}")
    expect(page.locator("[data-label=N]")).to_be_enabled()
    page.keyboard.press("1")
    for _ in range(20):
        page.keyboard.down("Enter")  # without a release these are repetitions
        page.wait_for_timeout(30)
    expect(page.locator(".votes")).to_be_visible()
    page.wait_for_timeout(500)
    for _ in range(5):
        page.keyboard.down("Enter")
    page.wait_for_timeout(300)
    expect(page.locator("#review .state")).to_have_text("open")
    page.keyboard.up("Enter")
    page.keyboard.press("Enter")
    expect(page.locator("#review .state")).not_to_have_text("open")


def test_a_final_verdict_can_be_undone_for_some_seconds(served, page):
    address, _, ids = served
    page.goto(f"{address}/cases/{ids[0]}")
    expect(page.locator("[data-label=N]")).to_be_enabled()
    for key in ("1", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".votes")).to_be_visible()
    for key in ("2", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#toast")).to_contain_text("Undo")
    press(page, "Enter")
    expect(page.locator("#toast")).to_contain_text("Undo")
    press(page, "u")
    assert case_of(page) == ids[0]
    expect(page.locator("#review .state")).to_have_text("open")
    expect(page.locator("#review")).to_contain_text("Your first verdict: N")


def test_an_admin_reopens_a_case_with_a_reason(served, page):
    address, _, ids = served
    page.goto(f"{address}/cases/{ids[0]}")
    expect(page.locator("[data-label=N]")).to_be_enabled()
    for key in ("1", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".votes")).to_be_visible()
    for key in ("1", "Enter"):
        page.keyboard.press(key)
    page.click("text=Reopen >> nth=0")
    page.fill("#reason", "the wrong patient")
    page.click("text=Reopen the case")
    expect(page.locator("#review")).to_contain_text("reopened")
    expect(page.locator("[data-label=N]")).to_be_enabled()
    assert page.locator(".votes").count() == 0, "the new round is blind again"
    page.goto(f"{address}/audit")
    expect(page.locator(".audit")).to_contain_text("the wrong patien")
