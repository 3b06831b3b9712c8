"""The paper's claims, checked by paired comparisons of ensembles that were trained in its setting.

The same comparisons among other ensembles are made too, but they are not about the paper.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ecgquorum.evaluation.comparisons import Comparison, EnsembleGroup, group_by_strategy
from ecgquorum.evaluation.conditions import ENSEMBLE, MIXED, NATURAL, WORST_KINDS
from ecgquorum.evaluation.metric_rows import RECIPE_TABLES, EnsembleFacts, MetricRow
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.metrics import Estimate
from ecgquorum.recipes import PAPER_PARTS, strategy_names
from ecgquorum.report.findings import is_simulated
from ecgquorum.report.published_results import paper_data_set, paper_value, unchanged_kind

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
_TARGET = "member 0"
_R_IU = "r_iu_authors"
_HALF = 0.5


@dataclass(frozen=True)
class ClaimResult:
    """A claim at one strength.

    condition:  "natural", or the strength with its unit
    paper:      the paper's values of both sides; None where it has none
    ours:       our values of both sides · spreads: their standard deviations over seeds; None for one seed
    difference: of ours, with its paired 95 % interval
    note:       which ensemble is meant, where that differs from strength to strength
    """

    condition: str
    paper: tuple[float, float] | None
    ours: tuple[float, float]
    spreads: tuple[float | None, float | None]
    difference: Estimate
    n_records: int
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the whole interval of the difference is above or below 0.

        An interval of no width is widened by 3/n, a share that could have been missed (rule of three).
        """
        low, high = self.difference.low, self.difference.high
        margin = 3 / self.n_records if low == high else 0.0
        return HOLDS if low - margin > 0 else FAILS if high + margin < 0 else OPEN


@dataclass(frozen=True)
class Claim:
    """A sentence, and the results for or against it at every strength."""

    text: str
    results: tuple[ClaimResult, ...]

    @property
    def verdict(self) -> str:
        """The verdict at all strengths; where it differs between them, undecided."""
        verdicts = {result.verdict for result in self.results}
        return verdicts.pop() if len(verdicts) == 1 else OPEN

    @property
    def summary(self) -> str:
        """The verdict, and at which strengths it is what."""
        by_verdict: dict[str, list[str]] = {}
        for result in self.results:
            by_verdict.setdefault(result.verdict, []).append(result.condition)
        if len(by_verdict) == 1:
            return self.verdict
        return "; ".join(f"{verdict} at {', '.join(at)}" for verdict, at in by_verdict.items())


@dataclass(frozen=True)
class _Comparison:
    """The claim that `better` has a higher metric than `worse`, natural or under an attack at every strength."""

    better: str
    worse: str
    metric: str
    attack: str

    def describe(self, better: str, worse: str) -> str:
        """The claim as a sentence about two ensembles."""
        what = "more accurate" if self.metric == "accuracy" else "more often uncertain when wrong (R_iu)"
        where = "on natural recordings" if self.attack == NATURAL else f"under {self.attack.upper()}"
        return f"`{better}` is {what} than `{worse}` {where}"


_COMPARISONS = (
    _Comparison("part", "baseline", "accuracy", NATURAL),
    _Comparison("dec", "baseline", "accuracy", "pgd"),
    _Comparison("part", "baseline", "accuracy", "pgd"),
    _Comparison("dec+part", "part", "accuracy", "pgd"),
    _Comparison("dec+part", "dec", "accuracy", "pgd"),
    _Comparison("dec+part", "baseline", "accuracy", "sap"),
    _Comparison("adv", "baseline", "accuracy", "pgd"),
    _Comparison("dec+part", "adv", "accuracy", "pgd"),
    _Comparison("dec+part", "dverge", "accuracy", "pgd"),
    _Comparison("baseline", "adv", "accuracy", NATURAL),
    _Comparison("dec+part", "baseline", _R_IU, NATURAL),
    _Comparison("dec+part", "baseline", _R_IU, "pgd"),
    _Comparison("dec+part", "baseline", _R_IU, "sap"),
)


def check_claims(card: Scorecard) -> tuple[list[Claim], list[Claim]]:
    """The paper's claims among ensembles in its setting, and the same comparisons and further ones among others.

    None on recordings that are simulated or of other data sets.
    """
    if is_simulated(card) or paper_data_set(card.data.classes) is None:
        return [], []
    paper: list[Claim] = []
    beyond: list[Claim] = []
    groups = [group for group in group_by_strategy(card.ensembles) if group.facts.strategy]
    for one in _COMPARISONS:
        for better, worse in _find_pairs(groups, one):
            in_setting = not better.facts.deviations and not worse.facts.deviations
            results = tuple(_find_results(card, one, better, worse, with_paper=in_setting))
            if results:
                text = one.describe(_name_group(better, groups), _name_group(worse, groups))
                (paper if in_setting else beyond).append(Claim(text, results))
    return paper, [*beyond, *_check_ensemble_attacks(card)]


def _find_pairs(groups: list[EnsembleGroup], claim: _Comparison) -> Iterator[tuple[EnsembleGroup, EnsembleGroup]]:
    """Groups of the claim's strategies, whatever is added to both alike."""
    for better in groups:
        for worse in groups:
            wanted = (_paper_part(better.facts), _paper_part(worse.facts)) == (claim.better, claim.worse)
            if wanted and _is_comparable(better.facts, worse.facts):
                yield better, worse


def _paper_part(facts: EnsembleFacts) -> str:
    """The strategy without what is not in the paper."""
    return "+".join(name for name in strategy_names(facts.strategy) if name in PAPER_PARTS) or "baseline"


def _is_comparable(one: EnsembleFacts, other: EnsembleFacts) -> bool:
    """Whether two ensembles differ in nothing but the parts that only one of them has."""
    names, other_names = set(strategy_names(one.strategy)), set(strategy_names(other.strategy))
    shared = (names & other_names) | {"training"}
    kept = [{text for text in facts.deviations if text.partition(": ")[0] in shared} for facts in (one, other)]
    return (
        (one.network, one.members) == (other.network, other.members)
        and names - set(PAPER_PARTS) == other_names - set(PAPER_PARTS)
        and kept[0] == kept[1]
        and not one.differs_in(other, shared.union(RECIPE_TABLES))
    )


def _name_group(group: EnsembleGroup, groups: list[EnsembleGroup]) -> str:
    """The strategy, and what sets the group apart from others of the same strategy."""
    facts = group.facts
    twins = [other.facts for other in groups if other.facts.strategy == facts.strategy and other is not group]
    if not twins:
        return facts.strategy
    apart = list(facts.deviations)
    apart += [facts.network] if any(twin.network != facts.network for twin in twins) else []
    apart = apart or ["as in the paper"]
    if any((twin.network, twin.deviations) == (facts.network, facts.deviations) for twin in twins):
        apart += group.names  # their recipes differ in what is not described
    return f"{facts.strategy} ({'; '.join(apart)})"


def _find_results(
    card: Scorecard, claim: _Comparison, better: EnsembleGroup, worse: EnsembleGroup, *, with_paper: bool
) -> Iterator[ClaimResult]:
    """The claim at every strength; in the paper's setting, at every strength for which the paper has results."""
    for one in card.comparisons:
        sign = 1 if set(one.first) <= set(better.names) else -1
        if one.metric != claim.metric or not _is_between(one, *((better, worse)[::sign])):
            continue
        if one.attack != NATURAL if claim.attack == NATURAL else not _is_attack(card, one, claim.attack):
            continue
        paper = _find_paper_values(card, claim, one.epsilon)
        if with_paper and paper is None:
            continue
        value, *bounds = (sign * number for number in one.difference)
        yield ClaimResult(
            condition=NATURAL if one.attack == NATURAL else f"{one.epsilon:g} {card.data.unit}",
            paper=paper if with_paper else None,
            ours=(one.values[::sign][0], one.values[::sign][1]),
            spreads=(one.spreads[::sign][0], one.spreads[::sign][1]),
            difference=Estimate(value, min(bounds), max(bounds)),
            n_records=one.n_records,
        )


def _is_between(one: Comparison, first: EnsembleGroup, second: EnsembleGroup) -> bool:
    """Whether the comparison is of trainings of these groups, of some or of all seeds."""
    return set(one.first) <= set(first.names) and set(one.second) <= set(second.names)


def _is_attack(card: Scorecard, one: Comparison, kind: str) -> bool:
    return one.target == _TARGET and unchanged_kind(card.evaluation["attacks"], one.attack, one.target) == kind


def _find_paper_values(card: Scorecard, claim: _Comparison, epsilon: float) -> tuple[float, float] | None:
    metric = "r_iu_auc" if claim.metric == _R_IU else claim.metric
    better, worse = (
        paper_value(card.data.classes, strategy, metric, claim.attack, _TARGET, epsilon)
        for strategy in (claim.better, claim.worse)
    )
    return None if better is None or worse is None else (better, worse)


def _check_ensemble_attacks(card: Scorecard) -> Iterator[Claim]:
    """How accurate the best ensemble is under its worst attack on all members, at every strength."""
    rows = [row for row in card.find(target=ENSEMBLE, metric="accuracy") if row.estimate]
    rows = [row for row in rows if row.attack not in WORST_KINDS and not row.attack.startswith(MIXED)]
    strengths = sorted({row.epsilon for row in rows})
    results = tuple(_best_under_attack(card, [row for row in rows if row.epsilon == e]) for e in strengths)
    if results:
        yield Claim("the best ensemble is right more than half of the time under an attack on all its members", results)


def _best_under_attack(card: Scorecard, rows: list[MetricRow]) -> ClaimResult:
    lowest: dict[str, MetricRow] = {}
    for row in rows:
        lowest[row.ensemble] = min(row, lowest.get(row.ensemble, row), key=lambda one: one.value or 0.0)
    best = max(lowest.values(), key=lambda row: row.value or 0.0)
    value, low, high = (number or 0.0 for number in (best.value, best.low, best.high))
    return ClaimResult(
        condition=f"{best.epsilon:g} {card.data.unit}",
        paper=None,
        ours=(value, _HALF),
        spreads=(None, None),
        difference=Estimate(value - _HALF, low - _HALF, high - _HALF),
        n_records=best.n_records,
        note=best.ensemble,
    )
