"""What the paper says of its strategies, put to the test of a scorecard."""

from collections.abc import Iterator
from dataclasses import dataclass

from ecgquorum.evaluation.conditions import NATURAL, WORST
from ecgquorum.evaluation.scorecard import Row, Scorecard

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided: the intervals overlap"
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
    """Every claim whose strategies the scorecard knows."""
    for one in _COMPARISONS:
        better, worse = (_found(card, strategy, one.measure, one.attack) for strategy in (one.better, one.worse))
        if better and worse:
            under = "" if one.attack == NATURAL else f" at {better.epsilon:g} {card.data.unit}"
            shown = f"{one.better} {_shown(better)}, {one.worse} {_shown(worse)}{under}"
            yield Claim(one.text, shown, _verdict(better, worse))
    yield from _under_the_worst(card)


def strongest(card: Scorecard, attack: str) -> float:
    """The greatest strength of an attack on member 0."""
    return max((row.epsilon for row in card.find(attack=attack, target=_TARGET)), default=0.0)


def _under_the_worst(card: Scorecard) -> Iterator[Claim]:
    """What the paper does not ask: whether anything is left when the attacker knows the whole ensemble."""
    rows = [row for row in card.find(attack=WORST, measure="accuracy") if row.value is not None]
    if not rows:
        return
    epsilon = sorted({row.epsilon for row in rows})[0]
    left = {row.ensemble: row for row in rows if row.epsilon == epsilon}
    best = max(left.values(), key=lambda row: row.value or 0.0)
    text = "(not in the paper) something is left when the attacker knows the whole ensemble"
    shown = (
        f"best of all at {epsilon:g} {card.data.unit}: {best.ensemble} {_shown(best)} of {best.n_records} recordings"
    )
    yield Claim(text, shown, HOLDS if (best.value or 0) > 0.5 else FAILS)


def _found(card: Scorecard, strategy: str, measure: str, attack: str) -> Row | None:
    target = "" if attack == NATURAL else _TARGET
    rows = card.find(
        strategy=strategy, measure=measure, attack=attack, target=target, epsilon=strongest(card, attack), detail=""
    )
    return next((row for row in rows if row.value is not None), None)


def _shown(row: Row) -> str:
    value, low, high = (100 * (v or 0.0) for v in (row.value, row.low, row.high))
    return f"{value:.1f} ({low:.1f}–{high:.1f})"


def _verdict(better: Row, worse: Row) -> str:
    if (better.low or 0) > (worse.high or 0):
        return HOLDS
    return FAILS if (better.high or 0) < (worse.low or 0) else OPEN
