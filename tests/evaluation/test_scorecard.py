"""The scorecard: rows, tables, figures, and its files."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from ecgquorum import Scorecard
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.conditions import MEMBERS, choose_records
from ecgquorum.evaluation.metric_rows import rows_to_csv
from ecgquorum.metrics import SCORES


def test_every_row_has_its_interval_or_its_reason(card):
    for row in card.rows:
        if row.value is None:
            assert row.reason and row.low is None and row.high is None
        else:
            biased = "ece" in row.metric or row.metric in ("macro_f1", "f1", "aurc")
            assert row.low - 1e-9 <= row.value <= row.high + 1e-9 or biased
            assert row.reason == ""
        assert row.model and row.data == card.data.data and row.n_records > 0
    assert {row.metric for row in card.rows} >= {
        "accuracy", "macro_f1", "f1", "ece", "ece_raw", "brier", "brier_raw", "r_cc_auc", "r_iu_auc", "ua_auc",
        "uncertainty_gap", "mean_uncertainty", "augrc", "aurc", "risk_at_80", "risk_at_90", "adjusted_r2", "linear_cka",
        "disagreement", "loss", "zero_gradients", "adaptive_ece", "nll", "error_auroc", "errors_caught_at_10",
        "error_aupr", "coverage_at_risk_5",
    }  # fmt: skip


def test_the_worst_case_is_never_better_than_any_attack(card):
    for row in card.find(attack="worst of all", metric="accuracy"):
        e = [one.name for one in card.ensembles].index(row.ensemble)
        common = set.intersection(*(set(positions.tolist()) for positions in card.records))
        assert row.n_records == len(common) == 12
        for c, condition in enumerate(card.conditions):
            if condition.epsilon <= row.epsilon:
                positions = np.searchsorted(card.records[c], sorted(common))
                assert row.value <= card.predictions[e, c].correct[positions].mean() + 1e-12


def test_mixed_recordings_have_the_area_by_every_score(card):
    mixed = {(row.ensemble, row.detail) for row in card.find(attack="mixed pgd", metric="augrc") if row.estimate}
    expected = {(one.name, s) for e, one in enumerate(card.ensembles) for s in ("", *card.predictions[e, 0].scores())}
    assert mixed == expected and {score for _, score in mixed} >= SCORES.keys()


def test_a_table_has_every_condition_and_ensemble(card):
    table = card.table("accuracy")
    assert table.columns == ("baseline", "dec+part")
    labels = [label for label, _ in table.rows]
    assert (
        labels[:2] == ["natural", "pgd on member 0, 10 µV"]
        and "worst of all, up to 100 µV" in labels
        and "mixed pgd on member 0, up to 75 µV" in labels
    )
    natural = card.estimate(ensemble="dec+part", attack="natural", target="", metric="accuracy")
    assert table.rows[0][1][1] == natural.times(100)
    text = str(table)
    assert text.startswith("accuracy (%) on simulated") and f"{100 * natural.value:.1f} (" in text
    assert len({len(line) for line in text.splitlines()[1:]}) <= 2, "columns are aligned"
    rows = list(csv.DictReader(table.to_csv().splitlines()))
    assert len(rows) == 2 * len(labels)
    assert float(rows[1]["value"]) == pytest.approx(100 * natural.value) and rows[1]["ensemble"] == "dec+part"


def test_tables_of_other_metrics_name_classes_and_pairs(card):
    assert [label for label, _ in card.table("f1").rows][:2] == ["natural: N", "natural: A"]
    assert [label for label, _ in card.table("disagreement").rows] == ["natural: 0, 1"]
    with pytest.raises(ScorecardError, match=r"no metric 'speed'; known: accuracy, macro_f1"):
        card.table("speed")


def test_a_plot_shows_every_attack(card):
    figure = card.plot()
    titles = [ax.get_title() for ax in figure.axes]
    assert [title.partition("  ")[0] for title in titles] == [
        "pgd on member 0",
        "sap on member 0",
        "confident on the ensemble",
        "worst of all",
    ]
    natural = card.estimate(ensemble="baseline", attack="natural", target="", metric="accuracy")
    x, y = figure.axes[0].lines[0].get_data()
    assert list(x) == [0, 10, 50, 75, 100] and y[0] == pytest.approx(100 * natural.value)
    assert figure.axes[0].get_xlabel() and figure.axes[0].get_ylabel() == "accuracy (%)"
    assert len(card.plot("augrc").axes) == 4
    with pytest.raises(ScorecardError, match="no metric 'speed'"):
        card.plot("speed")


def test_a_plot_of_natural_recordings_is_a_bar_for_each_ensemble(card):
    rows = tuple(row for row in card.rows if row.attack == "natural")
    (ax,) = replace(card, conditions=card.conditions[:1], rows=rows).plot().axes
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(
        [100 * row.value for row in rows if row.metric == "accuracy" and row.target != MEMBERS]
    )


def test_rows_alone_can_be_tabulated_and_plotted(card, tiny_study):
    rows = Scorecard.load(tiny_study / "scorecard.json", rows_only=True)
    assert str(rows.table()) == str(card.table())
    assert len(rows.plot().axes) == 4


def test_a_scorecard_is_saved_and_loaded_and_damage_is_detected(card, tmp_path):
    path = card.save(tmp_path / "card.json")
    again = Scorecard.load(path)
    assert again.rows == card.rows and again.conditions == card.conditions and again.ensembles == card.ensembles
    assert again.comparisons == card.comparisons and len(card.comparisons) == 2 * len(card.conditions)
    for key, found in card.predictions.items():
        np.testing.assert_array_equal(again.predictions[key].raw_member_probs, found.raw_member_probs)
        np.testing.assert_array_equal(again.predictions[key].uncertainty, found.uncertainty)
    for one, other in zip(card.examples, again.examples, strict=True):
        assert one.ensembles == other.ensembles and one.attacked.keys() == other.attacked.keys()
    assert "NaN" not in path.read_text()
    path.write_text(path.read_text().replace('"accuracy"', '"accuracv"', 1))
    with pytest.raises(ScorecardError, match="changed or damaged"):
        Scorecard.load(path)
    card.save(path)
    content = bytearray((tmp_path / "card.npz").read_bytes())
    content[100] ^= 1
    (tmp_path / "card.npz").write_bytes(content)
    with pytest.raises(ScorecardError, match="card.npz does not hold the predictions of card.json"):
        Scorecard.load(path)
    (tmp_path / "card.npz").unlink()
    with pytest.raises(ScorecardError, match="card.npz: cannot read the predictions"):
        Scorecard.load(path)
    with pytest.raises(ScorecardError, match=r"must end in .json"):
        card.save(tmp_path / "card")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', '{"format": 2, "rows": []}', "\x00"])
def test_what_is_not_a_scorecard_is_an_error(tmp_path, content):
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(ScorecardError, match=r"s.json is not a scorecard"):
        Scorecard.load(tmp_path / "s.json")
    with pytest.raises(ScorecardError, match="nowhere.json: cannot read the scorecard"):
        Scorecard.load(tmp_path / "nowhere.json")


def test_a_row_is_a_line_of_the_file_and_of_the_csv(card, tmp_path):
    path = card.save(tmp_path / "card.json")
    document = json.loads(path.read_text())
    lines = [line for line in path.read_text().splitlines() if line.startswith('  {"ensemble"')]
    assert len(lines) == len(document["rows"]) == len(card.rows)
    assert len(list(csv.DictReader(rows_to_csv(card.rows).splitlines()))) == len(card.rows)


def test_smaller_subsets_are_contained_in_larger_ones():
    some, more = choose_records(100, 10, seed=3), choose_records(100, 40, seed=3)
    assert set(some) < set(more) and len(some) == 10
    assert (np.diff(some) > 0).all()
    np.testing.assert_array_equal(choose_records(5, 9, seed=0), np.arange(5))
