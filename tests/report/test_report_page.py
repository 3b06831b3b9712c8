"""The report: figures, intervals, the paper's numbers, no network access."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

from ecgquorum import Cohort, EvaluationOptions, Scorecard, evaluate, load_ensemble, write_report
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation import merge_scorecards
from ecgquorum.evaluation.conditions import MASKING
from ecgquorum.report.figures import FIGURES, draw_figures
from ecgquorum.report.findings import masking_findings
from ecgquorum.report.published_results import paper_value
from ecgquorum.report.table_formats import to_csv, to_latex, to_markdown
from ecgquorum.report.tables import build_tables

PHYSIONET = ("N", "A", "O", "~")


@pytest.fixture(scope="module")
def card(tiny_study):
    """The tiny study's scorecard, merged with that of an evaluation under corruptions."""
    study = Scorecard.load(tiny_study / "scorecard.json")
    ensembles = {one.name: load_ensemble(tiny_study / "runs" / one.name) for one in study.ensembles}
    options = EvaluationOptions(severities=(1, 5), ood=("flat",), shift_records=8)
    shifted = evaluate(ensembles, Cohort(tiny_study / "cohort"), corruptions=["muscle", "lead-off"], options=options)
    (merged,) = merge_scorecards([study, shifted])
    return merged


@pytest.fixture(scope="module")
def page(card, tmp_path_factory):
    return write_report(card, tmp_path_factory.mktemp("report"))


def test_every_figure_is_inside_the_page_and_beside_it(page):
    text = page.read_text()
    assert text.count("<svg") == len(FIGURES)
    beside = {path.name for path in (page.parent / "figures").iterdir()}
    assert beside == {f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")}
    assert all(path.stat().st_size > 2000 for path in (page.parent / "figures").iterdir())


def test_every_table_is_inside_the_page_and_beside_it(page, card):
    text = page.read_text()
    names = {table.name for table in build_tables(card)}
    assert {
        "accuracy",
        "r_cc_auc",
        "r_iu_auc",
        "ua_auc",
        "deferral",
        "scores",
        "masking",
        "classes",
        "adjusted_r2",
        "corruption_summary",
        "corruption_differences",
        "corruption_accuracy",
        "corruption_scores",
        "corruption_calibration",
        "corruption_classes",
        "ood",
        "ood_fpr",
    } <= names
    beside = {path.name for path in (page.parent / "tables").iterdir()}
    assert beside == {f"{name}.{ending}" for name in names for ending in ("csv", "md", "tex")} | {"all_rows.csv"}
    assert text.count("<caption>") == len(names)


def test_the_page_needs_no_network(page):
    text = page.read_text()
    inside = re.sub(r"xmlns(:\w+)?=\"[^\"]*\"|<metadata>.*?</metadata>|<!DOCTYPE[^>]*>", "", text, flags=re.DOTALL)
    assert "http" not in inside
    assert not re.search(r'(src|href)="(?!#|data:)', re.sub(r"xlink:href", "href", text))
    assert not re.search(r"url\((?!#)", text)
    assert "<script" not in text and "@import" not in text


def test_names_inside_figures_do_not_collide(page):
    ids = re.findall(r'\bid="([^"]+)"', page.read_text())
    by_figure = {}
    for name in ids:
        by_figure.setdefault(name.partition("-")[0], set()).add(name)
    assert set(FIGURES) <= set(by_figure)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page.read_text()))
    assert used <= set(ids)


def test_every_number_of_every_table_has_its_interval(page, card):
    text = re.sub(r"<svg.*?</svg>", "", page.read_text(), flags=re.DOTALL)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text, re.DOTALL)
    assert len(cells) == sum(len(cells) for table in build_tables(card) for _, cells in table.rows)
    for cell in cells:
        assert re.search(r"<b>-?[\d.]+</b>\s*<span class=\"interval\">-?[\d.]+ to -?[\d.]+</span>", cell) or re.search(
            r"<b>–</b>\s*<span class=\"interval\">\w[^<]+</span>", cell
        ), cell
    assert "nan" not in text.lower().replace("nanometre", "")
    assert "not a medical device" in text


def test_the_papers_numbers_are_shown(page, card, tmp_path, no_figures):
    (accuracy,) = (table for table in build_tables(card) if table.name == "accuracy")
    ours = dict(accuracy.rows)["dec+part"]
    columns = [label for _, label in accuracy.columns]
    assert columns == ["natural", "10", "50", "75", "100", "10", "50", "75", "100"]
    assert [cell.paper for cell in ours[:5]] == pytest.approx([85.58, 73.86, 54.51, 44.55, 36.34])
    assert [cell.paper for cell in ours[5:]] == [None] * 4  # SAP of four steps is not the paper's
    assert ours[0].difference is None, "two members are not the paper's setting"
    assert f'<span class="paper">{ours[0].paper:.1f}</span>' in page.read_text()
    as_published = replace(card, ensembles=tuple(replace(one, deviations=()) for one in card.ensembles))
    (accuracy,) = (table for table in build_tables(as_published) if table.name == "accuracy")
    ours = dict(accuracy.rows)["dec+part"]
    assert ours[0].difference == pytest.approx(ours[0].estimate.value - 85.58)
    again = write_report(as_published, tmp_path / "again").read_text()
    assert f"{ours[0].paper:.1f} <i>{ours[0].difference:+.1f}</i>" in again
    assert "simulated" in page.read_text() and "results mean nothing" in page.read_text()


def test_the_papers_figures_are_found_and_no_others():
    assert paper_value(PHYSIONET, "baseline", "accuracy", "natural", "", 0.0) == pytest.approx(0.8382)
    assert paper_value(PHYSIONET, "adv", "r_iu_auc", "sap", "member 0", 75.0) == pytest.approx(0.2719)
    cpsc = ("Normal", "AF", "I-AVB", "LBBB", "RBBB", "PAC", "PVC", "STD", "STE")
    assert paper_value(cpsc, "dec+part", "accuracy", "pgd", "member 0", 0.175) == pytest.approx(0.0845)
    for strange in (
        (PHYSIONET, "dec+dverge", "accuracy", "natural", "", 0.0),
        (PHYSIONET, "baseline", "ece", "natural", "", 0.0),
        (PHYSIONET, "baseline", "accuracy", "pgd", "ensemble", 10.0),
        (PHYSIONET, "baseline", "accuracy", "pgd", "member 0", 20.0),
        (PHYSIONET, "baseline", "accuracy", "square", "member 0", 10.0),
        (("a", "b"), "baseline", "accuracy", "natural", "", 0.0),
    ):
        assert paper_value(*strange) is None


def test_tables_have_the_same_content_in_every_format(card):
    (accuracy,) = (table for table in build_tables(card) if table.name == "accuracy")
    rows = list(csv.DictReader(to_csv(accuracy).splitlines()))
    assert len(rows) == 2 * 9
    first = accuracy.rows[0][1][1].estimate
    assert float(rows[1]["value"]) == pytest.approx(first.value, abs=1e-4)
    assert (rows[1]["heading"], rows[1]["column"]) == ("PGD, member 0", "10")
    shown = f"{first.value:.1f}"
    markdown, latex = to_markdown(accuracy), to_latex(accuracy)
    assert shown in markdown and shown in latex
    assert markdown.count("\n| ") == 3 * (2 + 2) and markdown.count("paper 83.8") == 1  # natural, PGD, SAP
    assert "| PGD, member 0 | 10 | 50 | 75 | 100 |" in markdown
    assert latex.count(r"\\") == 2 + 2 * 2 and latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    for line in latex.splitlines():
        if line.endswith(r"\\"):
            spanned = sum(int(n) - 1 for n in re.findall(r"multicolumn\{(\d+)\}", line))
            assert line.replace(r"\&", "").count("&") + spanned == 9, line
    assert not re.search(r"(?<!\\)[_µεΔ≥→×²]", "\n".join(line for line in latex.splitlines() if line[0] != "%"))


@pytest.mark.long
def test_the_same_scorecard_gives_the_same_page(card, page, tmp_path):
    assert write_report(card, tmp_path).read_text() == page.read_text()


def test_several_data_sets_get_a_part_each(card, tmp_path, no_figures):
    other = replace(card, data=replace(card.data, data="other", source="another cohort"))
    page = write_report([card, other], tmp_path)
    text = page.read_text()
    assert 'id="part1"' in text and 'id="part2"' in text and "another cohort" in text
    assert (tmp_path / "tables/2_accuracy.csv").is_file()
    with pytest.raises(ScorecardError, match="no scorecard"):
        write_report([], tmp_path)


def test_evaluation_on_the_tune_part_or_another_cohort_is_noted(card, tmp_path, no_figures):
    tuned = replace(card, data=replace(card.data, part="tune"))
    assert "the results are too good" in write_report(tuned, tmp_path / "a").read_text()
    strange = replace(card, ensembles=tuple(replace(one, same_cohort=False) for one in card.ensembles))
    assert "may have been trained on" in write_report(strange, tmp_path / "b").read_text()


def test_names_are_escaped_in_html(card, tmp_path, no_figures):
    nasty = "<script>x</script>"
    renamed = replace(
        card,
        data=replace(card.data, source=nasty),
        ensembles=(replace(card.ensembles[0], name=nasty), card.ensembles[1]),
        rows=tuple(replace(row, ensemble=nasty) if row.ensemble == "baseline" else row for row in card.rows),
    )
    assert "<script" not in write_report(renamed, tmp_path).read_text()


def test_a_scorecard_with_little_in_it_still_makes_a_page(card, tmp_path):
    """No attacks, no checks, one member: what cannot be drawn is left out, and nothing is NaN."""
    alone = tuple(replace(one, members=1) for one in card.ensembles)
    rows = tuple(row for row in card.rows if row.attack == "natural" and row.target == "")
    rows = tuple(
        replace(row, value=None, low=None, high=None, reason="one member")
        if row.metric.endswith(("auc", "augrc"))
        else row
        for row in rows
    )
    predictions = {
        key: replace(found, raw_member_probs=found.raw_member_probs[:, :1])
        for key, found in card.predictions.items()
        if key[1] == 0
    }
    little = replace(
        card,
        ensembles=alone,
        rows=rows,
        conditions=card.conditions[:1],
        records=card.records[:1],
        predictions=predictions,
        examples=tuple(replace(example, attacked={}, ensembles={}) for example in card.examples),
    )
    text = write_report(little, tmp_path).read_text()
    assert set(draw_figures(little)) == {"examples", "confusion", "scores"}
    assert "one member" in text and ">nan<" not in text


def test_signs_of_masking_are_read_from_the_rows(card):
    name = card.ensembles[0].name

    def with_advantage(detail, low, high):
        rows = [
            replace(row, value=(low + high) / 2, low=low, high=high)
            if (row.ensemble, row.attack, row.metric, row.detail) == (name, MASKING, "advantage", detail)
            else row
            for row in card.rows
        ]
        return replace(card, rows=tuple(rows))

    for knows, less in (("white box", "transfer"), ("transfer", "black box"), ("white box", "black box")):
        assert f"{less} makes more errors than {knows}" in masking_findings(
            with_advantage(f"{knows} over {less}", -0.4, -0.1), name
        )
        findings = masking_findings(with_advantage(f"{knows} over {less}", -0.4, 0.1), name)
        assert f"{less} makes more errors than {knows}" not in findings


def test_figures_name_their_axes(card):
    for name, figure in draw_figures(card).items():
        for ax in figure.axes:
            if not name.endswith("examples") and ax.get_label() != "<colorbar>":
                assert ax.get_xlabel() and ax.get_ylabel(), name


def test_areas_of_one_attack_on_two_targets_are_separate(card):
    """Mixed deferral names its target, in the table and in the figure."""
    twice = [replace(c, target="ensemble") if c.attack == "sap" else c for c in card.conditions]
    twice = [replace(c, attack="pgd") if c.attack == "sap" else c for c in twice]
    rows = [replace(r, attack="mixed pgd", target="ensemble") if r.attack == "mixed sap" else r for r in card.rows]
    both = replace(card, conditions=tuple(twice), rows=tuple(rows))
    (table,) = (table for table in build_tables(both) if table.name == "deferral")
    assert [heading for heading, _ in table.groups] == ["natural", "mixed pgd, member 0", "mixed pgd, ensemble"]
    assert [label for heading, label in table.columns if heading == "natural"] == ["by uncertainty"]
    assert [label for heading, label in table.columns if heading == "mixed pgd, ensemble"][:2] == [
        "by uncertainty",
        "by confidence",
    ]
    name = card.ensembles[0].name
    wanted = [card.estimate(ensemble=name, attack=f"mixed {a}", metric="augrc").value for a in ("pgd", "sap")]
    by_uncertainty = [number for number, (_, label) in enumerate(table.columns) if label == "by uncertainty"][1:]
    assert [table.rows[0][1][number].estimate.value / 100 for number in by_uncertainty] == pytest.approx(wanted)
    legends = [ax.get_legend().get_texts()[0].get_text() for ax in draw_figures(both)["deferral"].axes[1:]]
    assert [f"{100 * value:.1f}" in text for value, text in zip(wanted, legends, strict=True)] == [True, True]


def test_only_the_papers_own_attack_is_compared_with_it(card):
    changed = [
        {**attack, "options": {"n_steps": 2}} if attack["kind"] == "pgd" else attack
        for attack in card.evaluation["attacks"]
    ]
    other = replace(card, evaluation=card.evaluation | {"attacks": changed})
    for one, compared in ((card, True), (other, False)):
        (accuracy,) = (table for table in build_tables(one) if table.name == "accuracy")
        papers = [cell.paper for cell in accuracy.rows[0][1]]
        assert papers[0] is not None and (papers[1] is not None) == compared
    assert paper_value(PHYSIONET, "part+dec", "accuracy", "natural", "", 0.0) == pytest.approx(0.8558)


def test_figures_of_an_earlier_report_are_removed(card, tmp_path, no_figures):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/masking.png").write_text("old")
    write_report(card, tmp_path)
    assert not list((tmp_path / "figures").iterdir())


def test_examples_show_what_was_attacked(card):
    for example in card.examples:
        for number, attacked in example.attacked.items():
            if not card.conditions[number].is_attack:
                assert not np.array_equal(attacked, example.natural)
                continue
            change = np.abs(attacked - example.natural[: len(attacked)]).max()
            assert change <= card.conditions[number].epsilon / 1000 + 1e-5
            assert change > 0
