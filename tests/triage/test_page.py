"""The worklist page in Chromium: filter, sort, links, wide and narrow."""

import shutil

import pytest

from ecgquorum.ensemble.result import Result
from ecgquorum.preprocessing.prepare import TracePreview
from ecgquorum.recordings import Acquisition, ReadFailure
from ecgquorum.triage import Urgency, write_worklist
from ecgquorum.triage.journal import Journal, JournalEntry
from ecgquorum.triage.worklist import plot_paths

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def row(name, label, probability, risk, decision, **changes):
    rest = {"label": label, "probabilities": {label: probability, "x": 1 - probability}, "risk": risk}
    one = Result(name, f"/in/{name}.hea", **rest, uncertainty=0.1, sha256=name * 16, **changes)
    return Urgency(urgent=("AF",)).rank(one).with_decision(decision, f"because of {name}")


@pytest.fixture
def out(tmp_path):
    """A worklist of four recordings and a file that is none; one of them is drawn."""
    known = Acquisition("P-17", "Doe <Jane>")
    rows = [
        row("b", "N", 0.9, 0.3, "deferred"),
        row("a", "AF", 0.6, 0.2, "deferred", acquisition=known),
        row("c", "N", 0.8, 0.1, "certain"),
        row("d", "AF", 0.7, 0.25, "certain"),
    ]
    with Journal(tmp_path / "journal.sqlite", {}) as journal:
        preview = TracePreview((0, 500, -100) * 100, 8.0, "II")
        journal.add([JournalEntry(one, "stamp", preview) for one in rows])
        journal.replace_unread([Result("e.txt", "/in/e.txt", decision="skipped", reason="no known format (.txt)")])
        journal.failures = [ReadFailure("/lost", "/lost: found no such file")]
        picture, _ = plot_paths(tmp_path, rows[1])
        picture.parent.mkdir()
        picture.write_bytes(b"\x89PNG")
        write_worklist(journal, tmp_path, "tiny", "A sentence.")
    return tmp_path


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; install the package chromium to test with it")
def test_rows_are_filtered_and_sorted(out):
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((out / "worklist.html").as_uri())

        def shown():
            return page.locator("section:not([hidden]) h2").all_inner_texts()

        assert shown() == ["a", "b", "d", "c", "e.txt"], "urgent classes first"
        page.select_option("[name=sort]", "risk")
        assert shown() == ["b", "d", "a", "c", "e.txt"]
        page.select_option("[name=sort]", "probability")
        assert shown() == ["a", "d", "c", "b", "e.txt"]
        page.uncheck("[value=certain]")
        assert shown() == ["a", "b", "e.txt"]
        page.fill("[name=text]", "doe p-17")
        assert shown() == ["a"] and page.inner_text("#count") == "1 of 5 shown"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "no scrolling sideways"
        link = page.locator("section:not([hidden]) a").first.get_attribute("href")
        browser.close()
    assert problems == [] and (out / link).is_file()


def test_the_page_says_what_is_missing_and_why_rows_are_where_they_are(out):
    text = (out / "worklist.html").read_text()
    assert "Not found or not readable: /lost: found no such file" in text
    assert "1. deferred by policy, urgency 1 (AF), risk 0.200" in text and "lead II, 25 mm/s" in text
    assert "Doe &lt;Jane&gt;" in text and "Doe <Jane>" not in text
    assert "ecgquorum plot '/in/b.hea'" in text
