"""Tables of a report: our results with intervals, the paper's, and the differences."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import stdev
from typing import Any

from ecgquorum.evaluation.comparisons import EnsembleGroup, group_by_strategy
from ecgquorum.evaluation.conditions import (
    ENSEMBLE,
    MASKING,
    MEMBERS,
    MIXED,
    NATURAL,
    SHARED_WORST,
    WORST,
    WORST_KINDS,
    Condition,
)
from ecgquorum.evaluation.metric_rows import EnsembleFacts, MetricRow
from ecgquorum.evaluation.mixed_conditions import DRAWS
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.report.published_results import find_paper_value, is_comparable, paper_data_set
from ecgquorum.report.report_table import Best, ReportTable, TableCell, average, describe_unit, mark_best
from ecgquorum.report.shift_tables import build_shift_tables

PAPER_METRICS = {
    "accuracy": "Accuracy (%)",
    "r_cc_auc": "R_cc, correct when certain (% AUC)",
    "r_iu_auc": "R_iu, uncertain when wrong (% AUC)",
    "ua_auc": "UA, uncertainty accuracy (% AUC)",
}
FURTHER_METRICS = {
    "macro_f1": "macro F1 (%)",
    "ece": "ECE (%)",
    "ece_raw": "ECE, raw (%)",
    "adaptive_ece": "adaptive ECE (%)",
    "brier": "Brier (×100)",
    "brier_raw": "Brier, raw (×100)",
    "nll": "NLL (nat ×100)",
    "uncertainty_gap": "uncertainty gap (×100)",
    "augrc": "AUGRC (%)",
    "aurc": "AURC (%)",
    "risk_at_80": "risk at 80 % (%)",
    "risk_at_90": "risk at 90 % (%)",
}
SCORE_METRICS = {
    "error_auroc": "AUROC of error detection",
    "error_aupr": "AUPR of error detection",
    "augrc": "AUGRC",
    "errors_caught_at_10": "errors among the 10 % with the highest score",
    "coverage_at_risk_5": "coverage at 5 % errors",
}
PAIR_METRICS = {
    "adjusted_r2": "Adjusted R²: variance of the second member's features that is linear in the first one's (%)",
    "linear_cka": "Linear CKA of two members' features (%)",
    "disagreement": "Disagreement: recordings for which two members predict different classes (%)",
    "error_correlation": "Correlation of two members' errors (%)",
}
NOT_COMPARABLE = (
    "Not compared with the paper, whose results are normalised by the natural evaluated recordings: evaluate with "
    '`normalise = "authors"` for that.'
)
_HEADINGS = {NATURAL: "", WORST: "worst of its own attacks", SHARED_WORST: SHARED_WORST}


def build_tables(card: Scorecard) -> list[ReportTable]:
    """Build every table of a scorecard that has a value."""
    made = [
        *(_paper_table(card, metric, title) for metric, title in PAPER_METRICS.items()),
        *(_stronger_attacks_table(card, metric, PAPER_METRICS[metric]) for metric in ("accuracy", "r_iu_auc")),
        _deferral_table(card),
        _score_table(card),
        _further_table(card),
        _class_table(card),
        _member_table(card),
        *(_pair_table(card, metric, title) for metric, title in PAIR_METRICS.items()),
        _masking_table(card),
        *build_shift_tables(card),
    ]
    return [table for table in made if table.rows and table.columns]


@dataclass(frozen=True)
class _Column:
    """A heading that it may share, its own label, the rows that fill it, and whether its cells compare ensembles."""

    heading: str
    label: str
    wanted: dict[str, Any]
    compares: bool = True


def _build_table(
    card: Scorecard,
    name: str,
    title: str,
    columns: Iterable[_Column],
    *,
    note: str = "",
    best: Best | None = None,
    with_paper: bool = False,
) -> ReportTable:
    """One row for each strategy that has a value; `with_paper`: with the paper's results where it has any.

    Where a strategy was trained with several seeds, its cells are means over them.
    """
    columns = tuple(columns)
    rows = []
    for group in group_by_strategy(card.ensembles):
        found = [[row for name in group.names for row in _first_row(card, name, column)] for column in columns]
        if any(found):
            paper_of = card if with_paper else None
            rows.append((name_row(group), tuple(_make_cell(each, group.facts, paper_of) for each in found)))
    headings = tuple((column.heading, column.label) for column in columns)
    return ReportTable(name, title, note, headings, mark_best(rows, best, [column.compares for column in columns]))


def name_row(group: EnsembleGroup) -> str:
    """Return the name of a strategy's row: that of its ensemble, with the number of seeds where there are several."""
    n_seeds = len(group.names)
    return group.names[0] + (f" ({n_seeds} seeds)" if n_seeds > 1 else "")


def _first_row(card: Scorecard, ensemble: str, column: _Column) -> list[MetricRow]:
    """The row of an ensemble that fills a column; none where it was not evaluated."""
    found = next(card.find(ensemble=ensemble, **column.wanted), None)
    return [found] if found else []


def _paper_table(card: Scorecard, metric: str, title: str) -> ReportTable:
    """Natural, then every attack on all recordings, from weak to strong."""
    comparable = is_comparable(card, metric)
    note = "" if comparable or not paper_data_set(card.data.classes) else NOT_COMPARABLE
    conditions = [c for c in card.conditions if c.attack == NATURAL or (c.is_attack and c.records is None)]
    columns = (
        _Column(_heading(c), "natural" if c.attack == NATURAL else f"{c.epsilon:g}", _under(c, metric))
        for c in conditions
    )
    return _build_table(
        card, metric, f"{title}, ε {describe_unit(card.data.unit)}", columns, note=note, best=max, with_paper=comparable
    )


def _stronger_attacks_table(card: Scorecard, metric: str, title: str) -> ReportTable:
    """Attacks on some recordings, and the worst of several attacks."""
    conditions = [c for c in card.conditions if c.is_attack and c.records is not None]
    for kind in WORST_KINDS:
        conditions += [Condition(kind, ENSEMBLE, e) for e in sorted({row.epsilon for row in card.find(attack=kind)})]
    comparable = not any(card.find(attack=SHARED_WORST))
    columns = (
        _Column(_heading(c), f"{c.epsilon:g}", _under(c, metric), comparable or c.attack != WORST) for c in conditions
    )
    return _build_table(
        card,
        f"beyond_the_paper_{metric}",
        f"{title}, stronger attacks, ε {describe_unit(card.data.unit)}",
        columns,
        note=_describe_stronger(card, conditions, metric, comparable=comparable),
        best=max,
    )


def _describe_stronger(card: Scorecard, conditions: list[Condition], metric: str, *, comparable: bool) -> str:
    """On how many recordings, and what the worst of several attacks means."""
    sizes = sorted({row.n_records for c in conditions for row in card.find(**_under(c, metric))})
    text = (
        f"On {' or '.join(map(str, sizes))} recordings, drawn at random where these are not all. Worst of its own "
        "attacks: for each recording the attack up to this strength with the smallest margin, among all that the "
        "ensemble was evaluated under."
    )
    if comparable:
        return text
    own = "; ".join(
        f"{one.name}: {row.n_records}"
        for one in card.ensembles
        if (row := next(card.find(ensemble=one.name, attack=WORST, metric=metric), None))
    )
    return text + (
        f" These differ between ensembles, and so do the recordings ({own}), so that column compares no ensembles. "
        "Worst of the shared attacks: among those that all ensembles were evaluated under, which are weaker; this is "
        "no measure of how robust an ensemble is."
    )


def _deferral_table(card: Scorecard) -> ReportTable:
    rows = [row for row in card.find(metric="augrc") if row.attack.startswith(MIXED)]
    mixed = list(dict.fromkeys((row.attack, row.target) for row in rows))
    scores = dict.fromkeys(("", *(row.detail for row in rows)))
    columns = (
        _Column(
            f"{attack}, {target}".rstrip(", "),
            f"by {score.replace('_', ' ') or 'uncertainty'}",
            {"attack": attack, "target": target, "metric": "augrc", "detail": score},
        )
        for attack, target in ((NATURAL, ""), *mixed)
        for score in (scores if attack != NATURAL else ("",))
    )
    note = (
        "AUGRC: errors among the recordings that are not deferred, as a share of all, averaged over the coverage; "
        "lower is better. Mixed: half of the recordings natural, 25, 15 and 10 % at the three weakest strengths, the "
        f"same ones for every ensemble, the mean of {DRAWS} draws."
    )
    title = "Area under the deferral curve, AUGRC (% of recordings)"
    return _build_table(card, "deferral", title, columns, note=note, best=min)


def _score_table(card: Scorecard) -> ReportTable:
    scores = dict.fromkeys(row.detail for row in card.find(metric="error_auroc"))
    columns = (
        _Column(title, score.replace("_", " "), _under(Condition(), metric) | {"detail": score})
        for metric, title in SCORE_METRICS.items()
        if any(card.find(metric=metric))  # older scorecards lack some
        for score in scores
    )
    note = "AUROC 50: no better than chance. Lower is better for AUGRC, higher for the others."
    return _build_table(card, "scores", "Errors found by each score, natural recordings (%)", columns, note=note)


def _further_table(card: Scorecard) -> ReportTable:
    columns = (
        _Column("natural recordings", title, _under(Condition(), metric))
        for metric, title in FURTHER_METRICS.items()
        if any(card.find(metric=metric))  # older scorecards lack some
    )
    return _build_table(card, "further_metrics", "Further metrics", columns)


def _class_table(card: Scorecard) -> ReportTable:
    columns = (
        _Column("class (recordings)", f"{name} ({count})", _under(Condition(), "f1") | {"detail": name})
        for name, count in card.data.n_recordings.items()
    )
    note = ", ".join(f"{code}: {name}" for code, name in card.data.class_names.items() if name and name != code)
    return _build_table(card, "classes", "F1 class by class, natural recordings (%)", columns, note=note, best=max)


def _member_table(card: Scorecard) -> ReportTable:
    numbers = range(max(one.members for one in card.ensembles))
    alone = [_Column("alone", f"member {k}", _under(_OF_MEMBERS, "accuracy") | {"detail": str(k)}) for k in numbers]
    together = _Column("", "together", _under(Condition(), "accuracy"))
    return _build_table(card, "members", "Accuracy member by member, natural recordings (%)", (*alone, together))


def _pair_table(card: Scorecard, metric: str, title: str) -> ReportTable:
    wanted = _under(_OF_MEMBERS, metric)
    del wanted["detail"]
    pairs = dict.fromkeys(row.detail for row in card.find(**wanted))
    return _build_table(card, metric, title, (_Column("members", pair, wanted | {"detail": pair}) for pair in pairs))


def _masking_table(card: Scorecard) -> ReportTable:
    checked = {"attack": MASKING, "metric": "error_rate"}
    columns = [
        *(
            _Column("classified wrongly", kind, checked | {"detail": kind})
            for kind in ("white box", "transfer", "black box")
        ),
        _Column("", "no gradient", {"attack": MASKING, "metric": "zero_gradients"}),
    ]
    some = next(card.find(attack=MASKING), None)
    note = f"{some.n_records} recordings at {some.epsilon:g} {card.data.unit}. " if some else ""
    note += (
        "White box: 100 steps of PGD on the ensemble. Transfer: 100 steps on member 0. Black box: 200 queries of "
        "Square. Without masking, white box ≥ transfer ≥ black box, and every recording has a gradient."
    )
    return _build_table(card, "masking", "Checks for gradient masking (% of recordings)", columns, note=note)


_OF_MEMBERS = Condition(NATURAL, MEMBERS)


def _under(condition: Condition, metric: str) -> dict[str, Any]:
    """The rows of a metric under a condition."""
    return {
        "attack": condition.attack,
        "target": condition.target,
        "epsilon": condition.epsilon,
        "metric": metric,
        "detail": "",
    }


def _heading(condition: Condition) -> str:
    if condition.attack in _HEADINGS:
        return _HEADINGS[condition.attack]
    what = condition.attack.upper() if len(condition.attack) <= 4 else condition.attack
    return f"{what}, {condition.target}"


def _make_cell(rows: list[MetricRow], one: EnsembleFacts, paper_of: Scorecard | None) -> TableCell:
    """The cell of one value, or of those of several seeds."""
    if not rows:
        return TableCell(None, None, "not evaluated")
    paper = find_paper_value(rows[0], paper_of) if paper_of else None
    found = [row.estimate.times(100) for row in rows if row.estimate]
    return TableCell(
        average(found) if found else None,
        None if paper is None else 100 * paper,
        "" if found else rows[0].reason,
        in_paper_setting=not one.deviations,
        spread=stdev(one.value for one in found) if len(found) > 1 else None,
    )
