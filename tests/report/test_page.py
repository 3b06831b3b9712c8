import re

import pytest

from ecgquorum import evaluate, write_report
from ecgquorum.report.figures import FIGURES


@pytest.fixture
def page(tiny_ensemble, tiny_cohort, tmp_path):
    return write_report(evaluate(tiny_ensemble, tiny_cohort, "train"), tmp_path / "report")


def test_every_figure_is_inside_the_page_and_beside_it(page):
    text = page.read_text()
    assert text.count("<svg") == len(FIGURES)
    assert {p.name for p in page.parent.iterdir()} == {"report.html"} | {
        f"{f}.{e}" for f in FIGURES for e in ("png", "svg")
    }
    assert all(path.stat().st_size > 2000 for path in page.parent.iterdir())


def test_the_page_asks_the_network_for_nothing(page):
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', re.sub(r"xlink:href", "href", text))
    assert not re.search(r"url\((?!#)", text)
    assert "<script" not in text and "@import" not in text


def test_every_accuracy_has_its_interval(page):
    text = page.read_text()
    assert re.search(r"Accuracy <strong>[\d.]+ %</strong>\s*\([\d.]+ to [\d.]+\)", text)
    assert len(re.findall(r"\d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\)", text)) >= 2 + 1 + 4
    assert "not a medical device" in text


def test_the_same_scorecard_gives_the_same_page(tiny_ensemble, tiny_cohort, tmp_path):
    card = evaluate(tiny_ensemble, tiny_cohort, "train")
    pages = [write_report(card, tmp_path / name).read_text() for name in ("one", "two")]
    assert pages[0] == pages[1]
