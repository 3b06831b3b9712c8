"""The desk in Chromium: upload, blind review, amendment and export."""

import io
import re
import zipfile
from pathlib import Path

import httpx

from .conftest import PATIENCE_MS, give_token, listening, needs_chromium, playwright, put

pytestmark = needs_chromium


def test_from_upload_to_export(page, desk, examples, classify):
    with listening(desk) as address:
        page.goto(f"{address}/upload")
        page.set_input_files("#files", [str(path) for path in sorted(examples.iterdir())])
        playwright.expect(page.locator("#uploads tbody tr")).to_have_count(8)
        playwright.expect(page.locator("#uploads a")).to_have_count(8)
        classify(desk)
        playwright.expect(page.locator("#uploads a", has_text="open").first).to_be_visible()

        page.goto(address)
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        chosen = page.locator("tr[aria-selected=true]")
        playwright.expect(chosen).to_have_count(1)
        name = chosen.locator("a").inner_text()
        page.keyboard.press("Enter")
        playwright.expect(page.locator("h1")).to_have_text(name)
        playwright.expect(page.locator("#viewer canvas").first).to_be_visible()
        assert "Ensemble:" not in page.inner_text("#review")
        assert page.locator(".votes").count() == 0

        playwright.expect(page.locator("[data-label]").first).to_be_enabled()
        page.keyboard.press("1")
        playwright.expect(page.locator("[data-label=N]")).to_have_attribute("aria-checked", "true")
        page.keyboard.press("Enter")
        playwright.expect(page.locator(".votes")).to_be_visible()
        answered = page.inner_text("h2:has-text('Ensemble:')").removeprefix("Ensemble: ")
        other = next(label for label in "NAO~" if label != answered)
        page.keyboard.press(str("NAO~".index(other) + 1))
        page.keyboard.press("Enter")
        playwright.expect(page.locator("#review .state")).to_have_text("amended")
        playwright.expect(page.locator("#toast")).to_contain_text("Amended.")

        page.keyboard.press("Escape")
        page.wait_for_url(re.compile(r"/$"))
        playwright.expect(page.locator("tr.is-amended")).to_have_count(1)

        page.goto(f"{address}/export")
        with page.expect_download() as download:
            page.click("text=cohort.zip >> nth=0")
        content = Path(download.value.path()).read_bytes()
        table = zipfile.ZipFile(io.BytesIO(content)).read("labels.csv").decode().splitlines()
        assert len(table) == 2 and f",{other},class,N,{answered}," in table[1]

        for path in ("/measures", "/audit"):
            page.goto(f"{address}{path}")
            playwright.expect(page.locator("h1")).to_be_visible()
        playwright.expect(page.locator(".good")).to_contain_text("The hash chain is valid")


def test_the_worklist_is_updated_by_changes_of_others(page, desk, examples, browser):
    with listening(desk) as address:
        page.goto(address)
        playwright.expect(page.locator(".empty")).to_be_visible()
        other = browser.new_page()
        other.goto(f"{address}/upload")
        other.set_input_files("#files", str(examples / "r0.npz"))
        playwright.expect(page.locator("tr.is-waiting")).to_have_count(1, timeout=PATIENCE_MS)
        other.close()


def test_two_readers_do_not_read_the_same_case(make_desk, browser, examples, classify):
    first = make_desk()
    tokens = {name: give_token(first, name, "reader") for name in ("Ada", "Bob")}
    uploader = give_token(first, "Uploader", "uploader")
    desk = make_desk()
    with listening(desk) as address:
        with httpx.Client(base_url=address, timeout=60, headers={"Authorization": f"Bearer {uploader}"}) as client:
            for path in sorted(examples.glob("r*.npz")):
                put(client, path)
        classify(desk)
        pages = {}
        for name, token in tokens.items():
            context = browser.new_context()
            context.set_default_timeout(PATIENCE_MS)
            pages[name] = context.new_page()
            pages[name].goto(address)
            pages[name].fill("#token", token)
            pages[name].click("button[type=submit]")
            playwright.expect(pages[name].locator("tr.is-open").first).to_be_visible()
        pages["Ada"].click("tr.is-open a >> nth=0")
        playwright.expect(pages["Ada"].locator("[data-label]").first).to_be_enabled()
        pages["Bob"].goto(pages["Ada"].url)
        playwright.expect(pages["Bob"].locator("#review")).to_contain_text("Claimed by Ada until")
        pages["Ada"].goto(address)
        playwright.expect(pages["Bob"].locator("[data-label]").first).to_be_visible(timeout=PATIENCE_MS)
        for page in pages.values():
            page.context.close()
