"""The results page and the model card show what is in the scorecard."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from ecgquorum import Scorecard, load_ensemble, model_card, pack, save_bundle, write_report, write_results
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import BundleError, ScorecardError
from ecgquorum.evaluation.conditions import Condition
from ecgquorum.metrics import Estimate
from ecgquorum.recipes import parse_recipe
from ecgquorum.report.findings import list_notes
from ecgquorum.report.published_results import paper_value
from ecgquorum.report.report_table import ReportTable, TableCell
from ecgquorum.report.table_formats import to_csv, to_latex, to_markdown
from ecgquorum.report.tables import build_tables


@pytest.fixture(scope="module")
def card(tiny_study):
    return Scorecard.load(tiny_study / "scorecard.json", rows_only=True)


@pytest.fixture(scope="module")
def as_real(card):
    """The same as if the recordings were real."""
    return replace(card, data=replace(card.data, source="PhysioNet/CinC Challenge 2017"))


@pytest.fixture(scope="module")
def in_setting(as_real):
    """The same as if they were trained in the paper's setting."""
    return replace(as_real, ensembles=tuple(replace(one, deviations=()) for one in as_real.ensembles))


@pytest.fixture
def packed(tiny_study, card, tmp_path):
    return pack(tiny_study / "runs" / "dec+part", card, tmp_path / "packed")


def changed(card, ensemble, metric, attack, values):
    """The scorecard with a value replaced, for every strength."""
    value, low, high = values
    rows = tuple(
        replace(row, value=value, low=low, high=high)
        if (row.ensemble, row.metric, row.attack, row.detail) == (ensemble, metric, attack, "")
        else row
        for row in card.rows
    )
    return replace(card, rows=rows)


def is_tidy(text):
    return not re.search(r"\n{3,}|[ \t]\n", text) and text.endswith("\n")


def test_the_page_needs_no_answers_and_shows_what_was_measured(tiny_study, card, tmp_path):
    alone = tmp_path / "alone.json"
    alone.write_text((tiny_study / "scorecard.json").read_text())
    text = write_results([Scorecard.load(alone, rows_only=True)], tmp_path / "results.md").read_text()
    accuracy = card.estimate(ensemble="baseline", attack="natural", target="", metric="accuracy")
    assert f"{100 * accuracy.value:.1f}" in text and f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}" in text
    assert is_tidy(text)
    assert all(line.count("|") > 2 for line in text.splitlines() if line.startswith("|"))
    with pytest.raises(ScorecardError, match="scorecard.npz"):
        Scorecard.load(alone)
    alone.write_text(alone.read_text().replace('"value": 0', '"value": 1', 1))
    with pytest.raises(ScorecardError, match="changed or damaged"):
        Scorecard.load(alone, rows_only=True)


def test_rows_alone_are_refused_where_answers_are_needed(card, tmp_path):
    with pytest.raises(ScorecardError, match="rows only"):
        write_report(card, tmp_path / "report")
    with pytest.raises(ScorecardError, match="no predictions to save"):
        card.save(tmp_path / "again.json")
    with pytest.raises(ScorecardError, match="no scorecard"):
        write_results([], tmp_path / "x.md")
    with pytest.raises(ScorecardError, match="of the same recordings"):
        write_results([card, card], tmp_path / "x.md")
    assert not list(tmp_path.iterdir())


def test_simulated_results_are_not_compared_with_the_paper(card, as_real, tmp_path):
    simulated = write_results([card], tmp_path / "s.md").read_text()
    assert "paper's results mean nothing" in simulated and "## Does the paper hold?" not in simulated
    real = write_results([as_real], tmp_path / "r.md").read_text()
    assert "paper's results mean nothing" not in real and "## Does the paper hold?" in real
    assert "The paper was evaluated on 853 other recordings" in real
    assert is_tidy(real)


def test_an_intro_and_the_claims_come_before_the_tables(as_real, tmp_path):
    text = write_results([as_real], tmp_path / "r.md", intro="## What we conclude\n\nNothing yet.\n").read_text()
    assert text.index("Nothing yet.") < text.index("## Does the paper hold?") < text.index("## Tables: ")
    assert is_tidy(text)


def test_corruptions_alone_are_not_about_the_paper(as_real, tmp_path):
    natural = Condition()
    corrupted = replace(as_real, conditions=(natural, Condition("muscle", "corruption", 5.0)))
    assert "Does the paper hold?" not in write_results([corrupted], tmp_path / "c.md").read_text()
    assert (
        "Does the paper hold?"
        in write_results([replace(as_real, conditions=(natural,))], tmp_path / "n.md").read_text()
    )


def test_wide_tables_are_split_into_equal_parts():
    cell = TableCell(Estimate(50.0, 40.0, 60.0))
    columns = (("", "natural"), *(("severity 5", f"c{number}") for number in range(15)))
    text = to_markdown(ReportTable("t", "Title", "", columns, (("baseline", (cell,) * 16),)))
    heads = [line for line in text.splitlines() if line.startswith(("| severity 5", "|  |"))]
    assert [line.count("|") - 2 for line in heads] == [1, 5, 5, 5]
    assert "| severity 5 | c5 | c6 | c7 | c8 | c9 |" in heads and text.count("50.0") == 16


def test_notes_are_complete(as_real):
    def notes_with(**changes):
        return " ".join(list_notes(replace(as_real, **changes)))

    assert "the results are too good" in notes_with(data=replace(as_real.data, part="tune"))
    assert "100 Hz, the paper's at 300" in notes_with(data=replace(as_real.data, rate_hz=100.0))
    other_cohorts = tuple(replace(one, same_cohort=False) for one in as_real.ensembles)
    assert "may have been trained on" in notes_with(ensembles=other_cohorts)
    assert "on the training part" in notes_with() and "may have been trained on" not in notes_with()
    for normalise, note in (("authors", "by its range on the natural test part"), ("robust", "99.9 % quantile")):
        assert note in notes_with(evaluation=as_real.evaluation | {"normalise": normalise})


def test_only_the_authors_normalisation_is_compared_with_the_paper(as_real):
    for normalise in ("training", "robust", "authors"):
        card = replace(as_real, evaluation=as_real.evaluation | {"normalise": normalise})
        tables = {one.name: one for one in build_tables(card)}
        assert tables["accuracy"].compares and not tables["accuracy"].note
        for metric in ("r_cc_auc", "r_iu_auc", "ua_auc"):
            assert tables[metric].compares == (normalise == "authors")
            assert ("Not compared with the paper" in tables[metric].note) == (normalise != "authors")


def test_hardened_ensembles_show_the_papers_results_without_a_difference(as_real, in_setting, tmp_path):
    ours = write_results([in_setting], tmp_path / "a.md").read_text()
    assert re.search(r"; paper 83\.8, [+-]\d", ours) and "was trained in the paper's setting" not in ours
    other = write_results([as_real], tmp_path / "b.md").read_text()
    assert "; paper 83.8 |" in other and not re.search(r"; paper 83\.8, ", other)
    assert "This was not tested: no ensemble here was trained in the paper's setting" in other
    assert "Not trained in the paper's setting: baseline" in other and "`dec+part` here and in the paper" not in other
    for cell in (cell for table in build_tables(as_real) for _, cells in table.rows for cell in cells):
        assert cell.difference is None


def test_the_comparison_counts_values_above_the_papers(in_setting, tmp_path):
    high = changed(in_setting, "dec+part", "accuracy", "natural", (0.99, 0.98, 1.0))
    low = changed(high, "dec+part", "accuracy", "pgd", (0.0, 0.0, 0.01))
    text = write_results([low], tmp_path / "r.md").read_text()
    (line,) = re.findall(r"^- Accuracy: .*$", text, re.MULTILINE)
    assert line.startswith(
        "- Accuracy: 1 of 5 results above the paper's, 1 of them with the whole interval; not above: PGD"
    )
    assert "PGD, member 0 100 (-36.3)" in line


def test_a_packed_bundle_is_the_same_model_with_its_results(tiny_study, card, packed):
    source = load_ensemble(tiny_study / "runs" / "dec+part")
    again = load_ensemble(packed)
    assert {path.name for path in packed.iterdir()} == {"card.json", "weights.safetensors"}
    for one, other in zip(source.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())
    rows = again.card["results"]["rows"]
    natural = [row for row in rows if (row["attack"], row["metric"]) == ("natural", "accuracy")]
    expected = card.estimate(ensemble="dec+part", attack="natural", target="", metric="accuracy")
    assert [row["value"] for row in natural] == [expected.value]
    assert source.card["versions"] == again.card["versions"]


def test_weights_that_two_strategies_share_are_packed_once(tiny_study, card, tmp_path):
    twin = replace(card.ensembles[1], name="twin", strategy="part")
    rows = tuple(replace(row, ensemble="twin", value=0.123) for row in card.find(ensemble="dec+part"))
    shared = tuple(replace(row, attack="worst of the shared attacks") for row in card.find(attack="worst of all"))
    both = replace(card, ensembles=(twin, *card.ensembles), rows=(*rows, *card.rows, *shared))
    results = load_ensemble(pack(tiny_study / "runs" / "dec+part", both, tmp_path / "p")).card["results"]
    places = [(r["attack"], r["target"], r["epsilon"], r["metric"], r["detail"]) for r in results["rows"]]
    assert len(set(places)) == len(places)
    assert not any(row["value"] == 0.123 for row in results["rows"])
    attacks = {row["attack"] for row in results["rows"]}
    assert "worst of all" in attacks and "worst of the shared attacks" not in attacks


def test_only_the_scorecard_of_these_weights_is_packed_and_nothing_is_overwritten(tiny_run, tiny_study, card, tmp_path):
    with pytest.raises(BundleError, match="no results of the weights"):
        pack(tiny_run, card, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()
    run = tiny_study / "runs" / "dec+part"
    before = (run / "card.json").read_bytes()
    with pytest.raises(BundleError, match="expected a new folder"):
        pack(run, card, run)
    assert (run / "card.json").read_bytes() == before


def test_the_model_card_is_complete(packed):
    text = model_card(json.loads((packed / "card.json").read_text()))
    for heading in ("Intended use", "Data", "Results", "Limitations", "Reproduce"):
        assert f"\n## {heading}\n" in text
    assert "Not a medical device" in text
    assert "worst of all, 100" in text and "pgd on member 0, 10 |" in text
    assert "under confident of 50 (µV) on the ensemble, accuracy is" in text
    assert is_tidy(text)


def test_the_model_card_omits_what_was_not_evaluated(tiny_run, tiny_recipe, packed, tmp_path):
    ensemble = load_ensemble(tiny_run)
    bare = load_ensemble(save_bundle(ensemble, tmp_path / "bare", recipe=tiny_recipe)).card
    bare.pop("temperature")
    text = model_card(bare)
    for heading in ("Data", "Results"):
        assert f"## {heading}" not in text
    assert "has not been evaluated" in text and "calibrated" not in text and "knows all members" not in text
    assert is_tidy(text)
    card = json.loads((packed / "card.json").read_text())
    natural = [row for row in card["results"]["rows"] if row["attack"] == "natural"]
    unattacked = model_card(card | {"split": {}, "results": card["results"] | {"rows": natural, "part": "tune"}})
    assert "knows all members" not in unattacked and "| attack," not in unattacked
    assert "drawn with seed" not in unattacked and "too good" in unattacked
    one = parse_recipe(card["recipe"]).model_copy(update={"members": 1, "strategy": "baseline"}).toml()
    alone = model_card(card | {"members": card["members"][:1], "recipe": one})
    assert "one `compact` network" in alone and "mutual information" not in alone
    rounded = model_card(card | {"rounding_moved": 1.49e-4})
    assert "by more than 0.0002" in rounded


def test_an_ensemble_without_a_recipe_has_a_card_too(tiny_run, tmp_path):
    ensemble = load_ensemble(tiny_run)
    own = Ensemble(ensemble.members, ensemble.classes, ensemble.input)
    text = model_card(load_ensemble(own.save(tmp_path / "mine")).card)
    assert text.startswith("# mine\n") and "strategy" not in text and "It was not trained from a recipe." in text
    assert is_tidy(text)


def test_hardened_strategies_are_compared_with_the_papers():
    classes = ("N", "A", "O", "~")
    plain = paper_value(classes, "dec+part", "accuracy", "natural", "", 0.0)
    assert paper_value(classes, "dec+part+harden", "accuracy", "natural", "", 0.0) == plain == pytest.approx(0.8558)
    assert paper_value(classes, "harden", "accuracy", "natural", "", 0.0) == pytest.approx(0.8382)
    assert paper_value(classes, "", "accuracy", "natural", "", 0.0) is None


def test_seeds_of_a_strategy_share_a_row_with_their_mean_and_spread(card):
    base = card.ensembles[0]
    others = [replace(base, name=f"baseline seed {seed}", seed=seed) for seed in (1, 2)]
    rows = [row for row in card.rows if row.ensemble == base.name]
    natural = next(row for row in rows if (row.metric, row.attack, row.target) == ("accuracy", "natural", ""))
    values = (0.80, 0.82, 0.87)
    made = tuple(
        replace(natural, ensemble=one.name, value=value, low=value - 0.02, high=value + 0.04)
        for one, value in zip((base, *others), values, strict=True)
    )
    (table,) = build_tables(replace(card, ensembles=(base, *others), rows=made, comparisons=()))[:1]
    ((name, (cell, *_)),) = table.rows
    assert name == "baseline (3 seeds)"
    assert (cell.estimate.value, cell.estimate.low, cell.estimate.high) == pytest.approx((83, 81, 87))
    assert cell.spread == pytest.approx(100 * np.std(values, ddof=1))
    for text in (to_markdown(table), to_latex(table), to_csv(table)):
        assert "3.6" in text and "83.0" in text
