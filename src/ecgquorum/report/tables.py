"""The tables of a report: ours with intervals, the paper's beside them, and the difference."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ecgquorum.evaluation.conditions import MASKING, MEMBERS, MIXED, NATURAL, WORST, Condition
from ecgquorum.evaluation.mixed_conditions import DRAWS
from ecgquorum.evaluation.scorecard import Row, Scorecard
from ecgquorum.metrics.measures import Estimate
from ecgquorum.recipes.study import WHOLE
from ecgquorum.report.published_results import published

PAPER_MEASURES = {
    "accuracy": "Accuracy (%)",
    "r_cc_auc": "R_cc, correct when certain (% AUC)",
    "r_iu_auc": "R_iu, uncertain when wrong (% AUC)",
    "ua_auc": "UA, uncertainty accuracy (% AUC)",
}
FURTHER_MEASURES = {
    "macro_f1": "macro F1 (%)",
    "ece": "ECE (%)",
    "ece_calibrated": "ECE, calibrated (%)",
    "brier": "Brier (×100)",
    "brier_calibrated": "Brier, calibrated (×100)",
    "delta_i_norm": "Δ I_norm (×100)",
    "deferral_auc": "deferral AUC (%)",
    "aurc": "AURC (%)",
    "risk_at_80": "risk at 80 % (%)",
    "risk_at_90": "risk at 90 % (%)",
}
PAIR_MEASURES = {
    "adjusted_r2": "Adjusted R²: how much of the second member's features the first one's predict (%)",
    "linear_cka": "Linear CKA of two members' features (%)",
    "disagreement": "Disagreement: recordings that two members answer differently (%)",
    "error_correlation": "Correlation of two members' errors (%)",
}
Best = Callable[[list[float]], float]


@dataclass(frozen=True)
class Cell:
    """A value in the table's unit with its interval, the paper's value, or the reason for having none."""

    estimate: Estimate | None
    paper: float | None = None
    reason: str = ""
    best: bool = False

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return self.estimate.value - self.paper if self.estimate and self.paper is not None else None


@dataclass(frozen=True)
class Table:
    """Named cells in rows and columns.

    columns: a heading that neighbours may share, which may be empty, and each one's own
    """

    name: str
    title: str
    note: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    digits: int = 1

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns, and over how many of them each stands."""
        groups: list[tuple[str, int]] = []
        for heading, _ in self.columns:
            if groups and groups[-1][0] == heading:
                groups[-1] = (heading, groups[-1][1] + 1)
            else:
                groups.append((heading, 1))
        return groups

    @property
    def compares(self) -> bool:
        """Whether the paper has something to say."""
        return any(cell.paper is not None for _, cells in self.rows for cell in cells)


def tables_of(card: Scorecard) -> list[Table]:
    """Every table of a scorecard that has something in it."""
    made = [
        *(_in_the_papers_layout(card, measure, title) for measure, title in PAPER_MEASURES.items()),
        *(_beyond_the_paper(card, measure, PAPER_MEASURES[measure]) for measure in ("accuracy", "r_iu_auc")),
        _deferral(card),
        _further_measures(card),
        _classes(card),
        _members(card),
        *(_pairs(card, measure, title) for measure, title in PAIR_MEASURES.items()),
        _masking(card),
    ]
    return [table for table in made if table.rows and table.columns]


@dataclass(frozen=True)
class _Column:
    """A heading that it may share, its own label, and the rows of the scorecard that fill it."""

    heading: str
    label: str
    wanted: dict[str, Any]


def _table(
    card: Scorecard,
    name: str,
    title: str,
    columns: Iterable[_Column],
    *,
    note: str = "",
    best: Best | None = None,
    compared: bool = False,
) -> Table:
    """A line for each ensemble that has something in it; `compared` with the paper's figures where it has any."""
    columns = tuple(columns)
    rows = []
    for one in card.ensembles:
        found = [next(card.find(ensemble=one.name, **column.wanted), None) for column in columns]
        if any(found):
            rows.append((one.name, tuple(_cell(row, card if compared else None) for row in found)))
    headings = tuple((column.heading, column.label) for column in columns)
    return Table(name, title, note, headings, _marked(rows, best))


def _in_the_papers_layout(card: Scorecard, measure: str, title: str) -> Table:
    """Natural, then every attack on all recordings, from weak to strong."""
    conditions = [c for c in card.conditions if c.records is None]
    columns = (
        _Column(_heading(c), "natural" if c.attack == NATURAL else f"{c.epsilon:g}", _under(c, measure))
        for c in conditions
    )
    return _table(card, measure, f"{title}, ε in {card.data.unit}", columns, best=max, compared=True)


def _beyond_the_paper(card: Scorecard, measure: str, title: str) -> Table:
    """Under attacks on some recordings, and under the worst of everything."""
    strengths = sorted({row.epsilon for row in card.find(attack=WORST)})
    conditions = [c for c in card.conditions if c.records is not None]
    conditions += [Condition(WORST, WHOLE, epsilon) for epsilon in strengths]
    sizes = sorted({row.n_records for c in conditions for row in card.find(**_under(c, measure))})
    note = (
        f"On {' or '.join(map(str, sizes))} recordings of the part, drawn at random where these are not all. Worst of "
        "all: for each recording the answer that went most wrong under any attack up to the strength, of those that "
        "all ensembles were put to."
    )
    columns = (_Column(_heading(c), f"{c.epsilon:g}", _under(c, measure)) for c in conditions)
    title = f"{title}, stronger attacks, ε in {card.data.unit}"
    return _table(card, f"beyond_the_paper_{measure}", title, columns, note=note, best=max)


def _deferral(card: Scorecard) -> Table:
    found = dict.fromkeys((row.attack, row.target) for row in card.find(measure="deferral_auc"))
    mixed = [(attack, target) for attack, target in found if attack.startswith(MIXED)]
    columns = (
        _Column("", f"{attack}, {target}".rstrip(", "), {"attack": attack, "target": target, "measure": "deferral_auc"})
        for attack, target in ((NATURAL, ""), *mixed)
    )
    note = (
        "Errors left among the recordings that the ensemble keeps, averaged over how many it keeps; lower is better. "
        "Mixed: half of the recordings natural, 25, 15 and 10 % at the three weakest strengths, the same ones for "
        f"every ensemble, the mean of {DRAWS} draws."
    )
    title = "Area under the deferral curve (% of recordings)"
    return _table(card, "deferral", title, columns, note=note, best=min)


def _further_measures(card: Scorecard) -> Table:
    columns = (
        _Column("natural recordings", title, _under(Condition(), measure))
        for measure, title in FURTHER_MEASURES.items()
    )
    return _table(card, "further_measures", "Further measures", columns)


def _classes(card: Scorecard) -> Table:
    columns = (
        _Column("class (recordings)", f"{name} ({count})", _under(Condition(), "f1") | {"detail": name})
        for name, count in card.data.n_recordings.items()
    )
    note = ", ".join(f"{code}: {name}" for code, name in card.data.class_names.items() if name and name != code)
    return _table(card, "classes", "F1 class by class, natural recordings (%)", columns, note=note, best=max)


def _members(card: Scorecard) -> Table:
    numbers = range(max(one.members for one in card.ensembles))
    alone = [_Column("alone", f"member {k}", _under(_OF_MEMBERS, "accuracy") | {"detail": str(k)}) for k in numbers]
    together = _Column("", "together", _under(Condition(), "accuracy"))
    return _table(card, "members", "Accuracy member by member, natural recordings (%)", (*alone, together))


def _pairs(card: Scorecard, measure: str, title: str) -> Table:
    wanted = _under(_OF_MEMBERS, measure)
    pairs = dict.fromkeys(row.detail for row in card.find(**wanted))
    return _table(card, measure, title, (_Column("members", pair, wanted | {"detail": pair}) for pair in pairs))


def _masking(card: Scorecard) -> Table:
    checked = {"attack": MASKING, "measure": "error_rate"}
    columns = [
        *(_Column("made wrong", kind, checked | {"detail": kind}) for kind in ("white box", "transfer", "black box")),
        _Column("", "no gradient", {"attack": MASKING, "measure": "zero_gradients"}),
    ]
    some = next(card.find(attack=MASKING), None)
    note = f"{some.n_records} recordings at {some.epsilon:g} {card.data.unit}. " if some else ""
    note += (
        "White box: 100 steps of PGD on the ensemble. Transfer: 100 steps on member 0. Black box: 200 questions of "
        "Square. Honest gradients give white box ≥ transfer ≥ black box, and leave no recording without a gradient."
    )
    return _table(card, "masking", "Are gradients hidden? (% of recordings)", columns, note=note)


_OF_MEMBERS = Condition(NATURAL, MEMBERS)


def _under(condition: Condition, measure: str) -> dict[str, Any]:
    """The rows of a measure under a condition."""
    return {
        "attack": condition.attack,
        "target": condition.target,
        "epsilon": condition.epsilon,
        "measure": measure,
    }


def _heading(condition: Condition) -> str:
    if condition.attack in (NATURAL, WORST):
        return "" if condition.attack == NATURAL else WORST
    what = condition.attack.upper() if len(condition.attack) <= 4 else condition.attack
    return f"{what}, {condition.target}"


def _cell(row: Row | None, compared: Scorecard | None) -> Cell:
    if row is None:
        return Cell(None, None, "not measured")
    paper = papers_figure(row, compared) if compared else None
    found = row.estimate
    ours = Estimate(100 * found.value, 100 * found.low, 100 * found.high) if found else None
    return Cell(ours, None if paper is None else 100 * paper, row.reason)


def papers_figure(row: Row, card: Scorecard) -> float | None:
    """The paper's figure, if this is the paper's attack: its kind, with none of its options changed."""
    if row.attack == NATURAL:
        kind = NATURAL
    else:
        own = (a for a in card.evaluation["attacks"] if (a["name"], a["target"]) == (row.attack, row.target))
        attack = next(own, None)
        if attack is None or attack["options"]:
            return None
        kind = attack["kind"]
    return published(card.data.classes, row.strategy, row.measure, kind, row.target, row.epsilon)


def _marked(rows: list[tuple[str, tuple[Cell, ...]]], best: Best | None) -> tuple[tuple[str, tuple[Cell, ...]], ...]:
    """The best of each column marked, where there are several to choose from."""
    if best is None or len(rows) < 2:
        return tuple(rows)
    tops = []
    for column in zip(*(cells for _, cells in rows), strict=True):
        values = [cell.estimate.value for cell in column if cell.estimate]
        tops.append(best(values) if values else None)
    return tuple(
        (
            name,
            tuple(
                replace(cell, best=bool(cell.estimate and cell.estimate.value == top))
                for cell, top in zip(cells, tops, strict=True)
            ),
        )
        for name, cells in rows
    )
