"""The results page and the model card: every figure in them is in the scorecard."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from ecgquorum import Scorecard, load_ensemble, model_card, pack, write_results
from ecgquorum.errors import BundleError, ScorecardError
from ecgquorum.report.claims import FAILS, HOLDS, OPEN, claims_of


@pytest.fixture(scope="module")
def card(tiny_study):
    return Scorecard.load(tiny_study / "scorecard.json", rows_only=True)


@pytest.fixture
def packed(tiny_study, card, tmp_path):
    return pack(tiny_study / "runs" / "dec+part", card, tmp_path / "packed")


def test_the_page_needs_no_answers_and_shows_what_was_measured(tiny_study, card, tmp_path):
    alone = tmp_path / "alone.json"
    alone.write_text((tiny_study / "scorecard.json").read_text())
    text = write_results([Scorecard.load(alone, rows_only=True)], tmp_path / "results.md").read_text()
    accuracy = card.estimate(ensemble="baseline", attack="natural", target="", measure="accuracy")
    assert f"{100 * accuracy.value:.1f}" in text and f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}" in text
    assert "paper 85.6" in text  # of dec+part
    assert "### What holds" in text
    assert not re.search(r"\n{3,}|[ \t]\n", text)
    assert all(line.count("|") > 2 for line in text.splitlines() if line.startswith("|"))
    with pytest.raises(ScorecardError, match="scorecard.npz"):
        Scorecard.load(alone)
    with pytest.raises(ScorecardError, match="found none"):
        write_results([], tmp_path / "x.md")


def changed(card, ensemble, measure, attack, values):
    """The scorecard with one value replaced, for every strength."""
    value, low, high = values
    rows = tuple(
        replace(row, value=value, low=low, high=high)
        if (row.ensemble, row.measure, row.attack, row.detail) == (ensemble, measure, attack, "")
        else row
        for row in card.rows
    )
    return replace(card, rows=rows)


@pytest.mark.parametrize(
    ("ours", "verdict"), [((0.9, 0.85, 0.95), HOLDS), ((0.5, 0.4, 0.6), OPEN), ((0.1, 0.05, 0.15), FAILS)]
)
def test_a_claim_holds_only_beyond_the_intervals(card, ours, verdict):
    against = changed(card, "baseline", "accuracy", "sap", (0.5, 0.4, 0.6))
    found = {claim.text: claim for claim in claims_of(changed(against, "dec+part", "accuracy", "sap", ours))}
    claim = found["`dec+part` withstands SAP better than `baseline`"]
    assert claim.verdict == verdict
    assert f"{100 * ours[0]:.1f}" in claim.measured and "50.0 (40.0–60.0) at 100 µV" in claim.measured
    assert not any("adv" in text for text in found), "of strategies that were not there"


def test_a_packed_bundle_is_the_same_model_and_says_how_it_did(tiny_study, card, packed):
    source = load_ensemble(tiny_study / "runs" / "dec+part")
    again = load_ensemble(packed)
    assert {path.name for path in packed.iterdir()} == {"card.json", "weights.safetensors"}
    for one, other in zip(source.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())
    rows = again.card["results"]["rows"]
    natural = [row for row in rows if (row["attack"], row["measure"]) == ("natural", "accuracy")]
    expected = card.estimate(ensemble="dec+part", attack="natural", target="", measure="accuracy")
    assert [row["value"] for row in natural] == [expected.value]
    assert source.card["versions"] == again.card["versions"]


def test_only_the_scorecard_of_these_weights_is_packed(tiny_run, card, tmp_path):
    with pytest.raises(BundleError, match="scorecard of these weights"):
        pack(tiny_run, card, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_the_model_card_says_all_that_is_asked(packed, tiny_run):
    text = model_card(json.loads((packed / "card.json").read_text()))
    for heading in ("Intended use", "Data", "Results", "Known failures", "Once more"):
        assert f"\n## {heading}\n" in text
    assert "Not a medical device" in text
    assert "worst of all, 100" in text and "pgd on member 0, 10 |" in text
    assert not re.search(r"\n{3,}|[ \t]\n", text)
    bare = model_card(load_ensemble(tiny_run).card)
    assert "## Results" not in bare and "has not been put to the test" in bare
