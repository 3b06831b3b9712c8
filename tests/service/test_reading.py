"""Reading cases in Chromium: from one to the next, live changes in many tabs, slips of the hand."""

import re
from datetime import datetime, timedelta

import httpx
import pytest

from .conftest import listening, needs_chromium, playwright, put

pytestmark = needs_chromium
expect = playwright.expect if playwright else None


@pytest.fixture
def served(make_desk, examples, classify):
    """A desk with at least four open cases: its address, the desk, and their ids in the order of the worklist."""
    desk = make_desk(audit_share=1.0)
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


def close_case(page, address, final):
    """Give N as the first verdict, and the class of the key `final` as the last."""
    page.goto(address)
    expect(page.locator("[data-label=N]")).to_be_enabled()
    for key in ("1", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".votes")).to_be_visible()
    for key in (final, "Enter"):
        page.keyboard.press(key)


def test_a_final_verdict_can_be_undone_for_some_seconds(served, page):
    address, _, ids = served
    close_case(page, f"{address}/cases/{ids[0]}", final="2")
    expect(page.locator("#toast")).to_contain_text("Undo")
    press(page, "Enter")
    expect(page.locator("#toast")).to_contain_text("Undo")
    press(page, "u")
    assert case_of(page) == ids[0]
    expect(page.locator("#review .state")).to_have_text("open")
    expect(page.locator("#review")).to_contain_text("Your first verdict: N")


def test_an_admin_reopens_a_case_with_a_reason(served, page):
    address, _, ids = served
    close_case(page, f"{address}/cases/{ids[0]}", final="1")
    page.click("text=Reopen >> nth=0")
    page.fill("#reason", "the wrong patient")
    page.click("text=Reopen the case")
    expect(page.locator("#review")).to_contain_text("reopened")
    expect(page.locator("[data-label=N]")).to_be_enabled()
    assert page.locator(".votes").count() == 0, "the new round is blind again"
    page.goto(f"{address}/audit")
    expect(page.locator(".audit")).to_contain_text("the wrong patien")


def open_case(page, address, case_id):
    page.goto(f"{address}/cases/{case_id}")
    expect(page.locator("[data-label=N]")).to_be_enabled()


def test_answers_beyond_one_class_and_a_comment(served, page):
    address, _, ids = served
    open_case(page, address, ids[0])
    for key in ("m", "1", "3", "t"):
        page.keyboard.press(key)
    page.keyboard.type("j1 bigeminy?")
    page.keyboard.press("Escape")
    expect(page.locator("#submit")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#review")).to_contain_text("Your first verdict: N + O")
    expect(page.locator("#several")).to_have_attribute("aria-pressed", "true")
    page.wait_for_timeout(450)
    page.keyboard.press("Enter")
    expect(page.locator("#review h2").first).to_have_text("N + O")
    expect(page.locator("blockquote")).to_have_text("j1 bigeminy?")
    for case_id, key, words in ((ids[1], "0", "none of these"), (ids[2], "x", "cannot tell")):
        open_case(page, address, case_id)
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        expect(page.locator("#review")).to_contain_text(f"Your first verdict: {words}")
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        expect(page.locator("#review .state")).to_have_text("amended")
    table = page.request.get(f"{address}/api/export/labels.csv").text().splitlines()
    assert [line.split(",")[1:3] for line in table[1:]] == [
        ["N + O", "classes"],
        ["none of these", "none"],
        ["cannot tell", "unclear"],
    ]


def test_the_reveal_stands_beside_the_classes_and_the_paper_does_not_jump(served, page):
    address, _, ids = served
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        open_case(page, address, ids[{1440: 0, 1024: 1, 390: 2}[width]])
        expect(page.locator("#viewer canvas").first).to_be_visible()
        before = page.locator(".ecg-stage").bounding_box()
        answers = page.locator(".classes").bounding_box()
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        expect(page.locator(".is-answer")).to_have_count(1)
        expect(page.locator(".ecg-maps button").first).to_be_visible()
        assert page.locator(".ecg-stage").bounding_box() == before
        now = page.locator(".classes").bounding_box()
        if width > 1000:
            assert abs(now["y"] - answers["y"]) < 1 and now["height"] == answers["height"]
            expect(page.locator(".is-answer")).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_action_is_reached_by_keys_and_the_reveal_is_announced(served, page):
    address, _, ids = served
    open_case(page, address, ids[0])
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    expect(page.locator("#keys")).to_contain_text("cannot tell")
    page.keyboard.press("1")  # a dialog is open: not meant for the page
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    assert page.locator("[data-label][aria-checked=true]").count() == 0 and ids[0] in page.url
    page.locator("[data-label]").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-label=O]")).to_be_focused()
    expect(page.locator("[data-label=O]")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("ArrowUp")
    expect(page.locator("[data-label=A]")).to_have_attribute("aria-checked", "true")
    assert page.locator(".classes [tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    expect(page.locator("#announcement")).to_be_focused()
    expect(page.locator("#spoken")).to_contain_text("The ensemble")


def test_the_worklist_is_filtered_sorted_assigned_and_marked(served, page):
    address, _, ids = served
    page.goto(f"{address}/?sort=name")
    names = page.locator(".worklist td:first-child a").all_text_contents()
    assert names == sorted(names)
    open_case(page, address, ids[-1])
    page.click("summary:has-text('Manage')")
    page.check("#urgent")
    page.select_option("#assigned", "local")
    page.fill("#new-name", "patient 17.npz")
    page.click("#manage button")
    expect(page.locator("#toast")).to_have_text("Saved.")
    page.goto(address)
    first = page.locator(".worklist tbody tr").first
    expect(first).to_contain_text("patient 17.npz")
    expect(first).to_contain_text("urgent")
    for query in ("urgent=true", "mine=true", "q=patient", "state=open&mine=true"):
        page.goto(f"{address}/?{query}")
        assert page.locator(".worklist tbody tr").count() == 1, query
    for query, count in (("uploader=local", 6), ("uploader=me", 0), ("since=2020-01-01", 6), ("until=2020-01-01", 0)):
        page.goto(f"{address}/?{query}")
        assert page.locator(".worklist tbody tr").count() == count, query
    page.goto(f"{address}/?label=N")
    assert page.locator(".worklist tbody tr").count() == 0, "a class would reveal the answer of an open case"
    close_case(page, f"{address}/cases/{ids[0]}", final="2")
    expect(page.locator("#toast")).to_contain_text("Undo")
    for query, count in (("label=A", 1), ("label=N", 0), ("label=A&state=open", 0)):
        page.goto(f"{address}/?{query}")
        assert page.locator(".worklist tbody tr").count() == count, query


def test_a_case_takes_four_keys(served, page):
    """Class, first verdict, final verdict, next case; none of them waits for the mouse."""
    address, _, ids = served
    n_keys = 0
    page.goto(f"{address}/cases/{ids[0]}?state=open")
    for place, case_id in enumerate(ids[:3]):
        expect(page.locator("[data-label=N]")).to_be_enabled()
        assert case_of(page) == case_id
        for key, is_done in (("1", "[data-label=N][aria-checked=true]"), ("Enter", ".votes"), ("Enter", ".undo")):
            page.keyboard.press(key)
            expect(page.locator(is_done)).to_be_visible()
            page.wait_for_timeout(450)  # what was just revealed is not confirmed in the same moment
            n_keys += 1
        press(page, "Enter")
        n_keys += 1
        assert page.request.get(f"{address}/api/recordings?state=open").json()["total"] == len(ids) - place - 1
    assert n_keys == 4 * 3


def test_times_are_those_of_the_reader(served, browser):
    address, _, ids = served
    uploaded = httpx.get(f"{address}/api/recordings/{ids[0]}").json()["uploaded_at"]
    context = browser.new_context(timezone_id="Asia/Tokyo")
    tokyo = context.new_page()
    tokyo.goto(f"{address}/cases/{ids[0]}")
    there = datetime.fromisoformat(uploaded) + timedelta(hours=9)
    expect(tokyo.locator(f"time[datetime='{uploaded}']").first).to_have_text(there.strftime("%Y-%m-%d %H:%M"))
    context.close()
