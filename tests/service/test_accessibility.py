"""axe-core finds nothing on any page, on a desktop and a phone, light and dark.

axe-core is not part of this repository: `npm install axe-core` somewhere, and name its axe.min.js in AXE_CORE.
"""

import os
from pathlib import Path

import httpx
import pytest

from .conftest import PATIENCE_MS, listening, needs_chromium, playwright, put

AXE = os.environ.get("AXE_CORE", "")
pytestmark = [
    needs_chromium,
    pytest.mark.slow,
    pytest.mark.skipif(not AXE, reason="no axe-core here; name its axe.min.js in AXE_CORE to test with it"),
]
PAGES = ("/", "/?state=open&since=2020-01-01", "/upload", "/measures", "/export", "/audit", "/admin", "/login", "/none")


@pytest.fixture(scope="module")
def axe():
    return Path(AXE).read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1440, 900), (390, 844)], ids=str)
def test_axe_finds_nothing(axe, make_desk, browser, examples, classify, scheme, size):
    desk = make_desk(audit_share=1.0)
    found = []
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()

    def check(what):
        page.evaluate(axe)
        violations = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
        found.extend(
            (what, one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in violations
        )

    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        for path in sorted(examples.glob("r*.npz")):
            put(client, path).raise_for_status()
        classify(desk)
        for path in PAGES:
            page.goto(f"{address}{path}")
            check(path)
        page.goto(f"{address}/?state=open")
        page.keyboard.press("j")
        check("a chosen row")
        page.keyboard.press("?")
        check("the keys")
        page.keyboard.press("Escape")
        held = []
        page.route("**/measurements", lambda route: held.append(route))
        page.keyboard.press("Enter")
        playwright.expect(page.locator("[data-label]").first).to_be_enabled()
        check("a case before the reveal, still measuring")
        while held:
            held.pop().continue_()
        page.unroute("**/measurements")
        playwright.expect(page.locator("[data-key=heart_rate_bpm]")).to_be_visible()
        check("a case before the reveal")
        page.locator(".ecg-stage").focus()
        page.keyboard.press("c")
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        playwright.expect(page.locator(".votes")).to_be_visible()
        check("a case after the reveal")
        page.keyboard.press("2")
        page.keyboard.press("Enter")
        playwright.expect(page.locator(".undo")).to_be_visible()
        check("a closed case")
        context.close()
    assert found == []
