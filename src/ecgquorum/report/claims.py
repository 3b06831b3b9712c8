"""What the paper says of its strategies, put to the test of a scorecard."""

from collections.abc import Iterator
from dataclasses import dataclass

from ecgquorum.evaluation.conditions import NATURAL, WORST
from ecgquorum.evaluation.scorecard import Row, Scorecard
from ecgquorum.recipes import without_hardening
from ecgquorum.recipes.study import WHOLE
from ecgquorum.report.notes import is_simulated
from ecgquorum.report.tables import papers_figure

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
_TARGET = "member 0"


@dataclass(frozen=True)
class Claim:
    """A sentence, the figures that speak for or against it, and the verdict."""

    text: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class _Comparison:
    """`better` is said to have the higher value of a measure than `worse` does, under an attack at its strongest."""

    text: str
    measure: str
    attack: str
    better: str
    worse: str


_COMPARISONS = (
    _Comparison("`part` answers natural recordings better than `baseline`", "accuracy", NATURAL, "part", "baseline"),
    _Comparison("`dec` withstands PGD better than `baseline`", "accuracy", "pgd", "dec", "baseline"),
    _Comparison("`part` withstands PGD better than `baseline`", "accuracy", "pgd", "part", "baseline"),
    _Comparison("`dec+part` withstands PGD better than `part`", "accuracy", "pgd", "dec+part", "part"),
    _Comparison("`dec+part` withstands PGD better than `dec`", "accuracy", "pgd", "dec+part", "dec"),
    _Comparison("`dec+part` withstands SAP better than `baseline`", "accuracy", "sap", "dec+part", "baseline"),
    _Comparison("`adv` withstands PGD better than `baseline`", "accuracy", "pgd", "adv", "baseline"),
    _Comparison("`dec+part` withstands the strongest PGD better than `adv`", "accuracy", "pgd", "dec+part", "adv"),
    _Comparison("`dec+part` withstands PGD better than `dverge`", "accuracy", "pgd", "dec+part", "dverge"),
    _Comparison("`adv` costs accuracy on natural recordings", "accuracy", NATURAL, "baseline", "adv"),
    _Comparison("`dec+part` is more often uncertain when wrong", "r_iu_auc", NATURAL, "dec+part", "baseline"),
    _Comparison("`dec+part` is more often uncertain when wrong, under PGD", "r_iu_auc", "pgd", "dec+part", "baseline"),
)


def claims_of(card: Scorecard) -> Iterator[Claim]:
    """Every claim whose strategies and attacks, as the paper has them, the scorecard knows; none on simulated data."""
    if is_simulated(card):
        return
    for one in _COMPARISONS:
        better, worse = (_found(card, strategy, one.measure, one.attack) for strategy in (one.better, one.worse))
        if better and worse:
            under = "" if one.attack == NATURAL else f" at {better.epsilon:g} {card.data.unit}"
            shown = f"{better.ensemble} {_shown(better)}, {worse.ensemble} {_shown(worse)}{under}"
            (low, high), (other_low, other_high) = _bounds(better), _bounds(worse)
            yield Claim(one.text, shown, HOLDS if low > other_high else FAILS if high < other_low else OPEN)
    yield from _under_attacks_on_the_whole(card)


def _under_attacks_on_the_whole(card: Scorecard) -> Iterator[Claim]:
    """What the paper does not ask: whether much is left when the attacker knows the whole ensemble."""
    rows = [row for row in card.find(target=WHOLE, measure="accuracy") if row.estimate and row.attack != WORST]
    if not rows:
        return
    epsilon = min(row.epsilon for row in rows)
    lowest: dict[str, Row] = {}
    for row in (row for row in rows if row.epsilon == epsilon):
        lowest[row.ensemble] = min(row, lowest.get(row.ensemble, row), key=lambda one: one.value or 0.0)
    best = max(lowest.values(), key=lambda row: row.value or 0.0)
    text = "(not in the paper) more than half is left when the attacker knows the whole ensemble"
    low, high = _bounds(best)
    shown = (
        f"{best.ensemble}, best of all, {_shown(best)} of {best.n_records} recordings at {epsilon:g} {card.data.unit}"
    )
    yield Claim(text, shown, HOLDS if low > 0.5 else FAILS if high < 0.5 else OPEN)


def _found(card: Scorecard, strategy: str, measure: str, attack: str) -> Row | None:
    """The value under the strongest attack that the paper has a figure for."""
    target = "" if attack == NATURAL else _TARGET
    rows = [
        row
        for row in card.find(measure=measure, attack=attack, target=target, detail="")
        if row.estimate
        and row.strategy
        and row.strategy
        and without_hardening(row.strategy) == strategy
        and papers_figure(row, card) is not None
    ]
    return max(rows, key=lambda row: row.epsilon, default=None)


def _shown(row: Row) -> str:
    value, low, high = (100 * (v or 0.0) for v in (row.value, row.low, row.high))
    return f"{value:.1f} ({low:.1f}–{high:.1f})"


def _bounds(row: Row) -> tuple[float, float]:
    """The interval; where all recordings are alike, with what may go unseen among so many."""
    low, high = row.low or 0.0, row.high or 0.0
    unseen = 3 / row.n_records if low == high else 0.0
    return low - unseen, high + unseen
