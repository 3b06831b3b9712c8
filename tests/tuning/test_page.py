"""The page of a search: complete, and without network access."""

import re

import pytest

from ecgquorum.metrics import Estimate
from ecgquorum.recipes import load_study
from ecgquorum.tuning import Trial, search_space
from ecgquorum.tuning.page import write_page
from ecgquorum.tuning.space import ABOVE, BANDS, BELOW, FIRST
from ecgquorum.tuning.trial import ATTACKED, NATURAL, evaluation_of_trials

STUDY = load_study("physionet2017-compact")
SPACE = search_space(STUDY.recipe.with_strategy("dec+part"), 300.0).restrict(("member", "dec", "part"))
GIVEN = SPACE.values_of(SPACE.given)
CUT = {BANDS: "cut", BELOW: 12.5, ABOVE: 7.25, FIRST: "below"}


def trial(number, natural, attacked, **changed):
    measures = {
        NATURAL: Estimate(natural, natural - 0.031, natural + 0.029),
        ATTACKED: Estimate(attacked, attacked - 0.071, attacked + 0.069),
    }
    return Trial(number, GIVEN | changed, measures)


TRIALS = [
    trial(0, 0.712, 0.405),
    trial(1, 0.752, 0.523, **{"strategies.dec.weight": 0.0123}),
    trial(2, 0.602, 0.601, **CUT),
    trial(3, 0.611, 0.304),
    Trial(4, GIVEN, {}, "expected a finite loss, found <nan>"),
]


@pytest.fixture
def write(tiny_cohort, tmp_path):
    def write(trials, importances=None):
        path = tmp_path / "search.html"
        return write_page(
            path, trials, SPACE, tiny_cohort, evaluation_of_trials(STUDY, 200), importances or {}
        ).read_text()

    return write


def test_the_page_shows_the_results(write):
    page = write(TRIALS, {"strategies.dec.weight": 0.7, "member.width": 0.3})
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"<(style|svg).*?</\1>", "", page, flags=re.DOTALL)))
    assert "75.2 72.1 to 78.1" in text and "52.3 45.2 to 59.2" in text
    assert "0, as given" in text and "1, chosen" in text
    assert "The best of many trials looks better than it is" in text and "best of 5" in text
    assert "6 natural recordings, and 6 of them under PGD of 50 µV on member 0" in text
    assert "The test part was not used" in text
    assert "0.0123" in text and "12.5" in text and "7.25" in text
    assert "expected a finite loss, found &lt;nan&gt;" in text
    for parameter in SPACE.parameters:
        assert parameter.name in text and parameter.about.replace("'", "&#39;") in text
    assert page.count("<svg") == 4


def test_the_page_opens_offline(write):
    page = write(TRIALS, {"member.width": 1.0})
    body = re.sub(r'xmlns(:\w+)?="[^"]*"|(?s:<metadata>.*?</metadata>)', "", page)
    assert not re.search(r"""(src|href)=["'](?!#)|url\((?!#)|@import|<script|https?://""", body)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_search_with_failures_only_has_a_page(write):
    page = write([TRIALS[-1]])
    assert "Trials that failed" in page and "<svg" not in page and "Search space" in page


def test_a_search_with_one_trial_has_a_page(write):
    page = write(TRIALS[:1])
    assert "0, as given, chosen" in page and "<svg" in page and "equally good" not in page
