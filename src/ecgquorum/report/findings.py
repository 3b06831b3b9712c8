"""What follows from a scorecard, in sentences: notes for the reader, gradient masking, and the paper's claims."""

from collections.abc import Iterator
from dataclasses import dataclass

from ecgquorum.evaluation.conditions import ENSEMBLE, MASKING, NATURAL, WORST
from ecgquorum.evaluation.metric_rows import MetricRow
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.recipes import without_hardening
from ecgquorum.report.published_results import PAPER_DATA, paper_data_set
from ecgquorum.report.tables import find_paper_value

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
_TARGET = "member 0"


def is_simulated(card: Scorecard) -> bool:
    """Whether the recordings are simulated."""
    return card.data.source.startswith("simulated")


def list_notes(card: Scorecard) -> list[str]:
    """What a reader must know before comparing results: warnings, then differences from the paper."""
    return [*_warnings(card), *_differences(card)]


def _warnings(card: Scorecard) -> Iterator[str]:
    data = card.data
    if data.part != "test":
        yield f"Evaluated on the {data.part} part, which was used to make choices: the results are too good."
    for one in card.ensembles:
        if not one.same_cohort:
            yield (
                f"{one.name} was trained on another cohort or another split of this one: it may have been trained on "
                "recordings that it is evaluated on here."
            )
    if paper_data_set(data.classes) and is_simulated(card):
        yield (
            "These recordings are simulated, the paper's are real: the differences from the paper's results mean "
            "nothing."
        )


def _differences(card: Scorecard) -> Iterator[str]:
    data, paper = card.data, PAPER_DATA.get(paper_data_set(card.data.classes) or "")
    if paper is None or is_simulated(card):
        return
    if data.n_records != paper.n_test:
        yield f"The paper was evaluated on {paper.n_test} other recordings, which alone may explain differences."
    if data.rate_hz != paper.rate_hz:
        yield (
            f"Recordings are sampled at {data.rate_hz:g} Hz, the paper's at {paper.rate_hz:g} Hz. The kernels of SAP "
            "are in samples, so it is smoother here."
        )
    if data.n_train:
        yield f"Members were trained on {data.n_train:,} recordings, the paper's on {paper.n_train:,}."
    networks = sorted({one.network for one in card.ensembles if one.network})
    if networks:
        yield f"Members here: {'; '.join(networks)}. The paper's: 13 dilated blocks, trained on clean recordings."
    if any("harden" in one.strategy for one in card.ensembles):
        yield "The paper does not harden: each strategy with `harden` is compared with the paper's without it."
    yield (
        f"Uncertainty is normalised by {describe_normalisation(card)} (the paper: by its range on the natural test "
        "part). Attacks do not change padding. Exact duplicates were left out before the split."
    )
    yield "Intervals are over recordings, for one training of each strategy: another seed may differ by more."


def describe_normalisation(card: Scorecard) -> str:
    """By which range uncertainty is normalised."""
    return {
        "training": "its range on the training part",
        "robust": "0 and its 99.9 % quantile on the training part",
    }.get(str(card.evaluation.get("normalise")), f"its range on the natural {card.data.part} part")


def masking_findings(card: Scorecard, ensemble: str) -> list[str]:
    """Signs of gradient masking beyond what the intervals allow; empty where there are none."""
    found = []
    rows = list(card.find(ensemble=ensemble, attack=MASKING))
    losses = [row.value for row in rows if row.metric == "loss" and row.value is not None]
    if losses and losses[-1] <= losses[0]:
        found.append("the loss does not rise with the steps")
    for row in rows:
        if row.metric == "advantage" and row.estimate and row.estimate.high < 0:
            knows, _, knows_less = row.detail.partition(" over ")
            found.append(f"{knows_less} makes more errors than {knows}")
        if row.metric == "zero_gradients" and row.value:
            found.append(f"{100 * row.value:.0f} % of recordings have no gradient")
    return found


@dataclass(frozen=True)
class Claim:
    """A sentence, the results for or against it, and the verdict."""

    text: str
    results: str
    verdict: str


@dataclass(frozen=True)
class _Comparison:
    """The claim that `better` has a higher metric than `worse` under an attack at its largest strength."""

    text: str
    metric: str
    attack: str
    better: str
    worse: str


_COMPARISONS = (
    _Comparison(
        "`part` is more accurate than `baseline` on natural recordings", "accuracy", NATURAL, "part", "baseline"
    ),
    _Comparison("`dec` is more accurate than `baseline` under PGD", "accuracy", "pgd", "dec", "baseline"),
    _Comparison("`part` is more accurate than `baseline` under PGD", "accuracy", "pgd", "part", "baseline"),
    _Comparison("`dec+part` is more accurate than `part` under PGD", "accuracy", "pgd", "dec+part", "part"),
    _Comparison("`dec+part` is more accurate than `dec` under PGD", "accuracy", "pgd", "dec+part", "dec"),
    _Comparison("`dec+part` is more accurate than `baseline` under SAP", "accuracy", "sap", "dec+part", "baseline"),
    _Comparison("`adv` is more accurate than `baseline` under PGD", "accuracy", "pgd", "adv", "baseline"),
    _Comparison("`dec+part` is more accurate than `adv` under the strongest PGD", "accuracy", "pgd", "dec+part", "adv"),
    _Comparison("`dec+part` is more accurate than `dverge` under PGD", "accuracy", "pgd", "dec+part", "dverge"),
    _Comparison("`adv` is less accurate than `baseline` on natural recordings", "accuracy", NATURAL, "baseline", "adv"),
    _Comparison("`dec+part` is more often uncertain when wrong", "r_iu_auc", NATURAL, "dec+part", "baseline"),
    _Comparison("`dec+part` is more often uncertain when wrong, under PGD", "r_iu_auc", "pgd", "dec+part", "baseline"),
)


def check_claims(card: Scorecard) -> Iterator[Claim]:
    """Check every claim of the paper whose strategies and attacks the scorecard has; none on simulated data."""
    if is_simulated(card):
        return
    for one in _COMPARISONS:
        better, worse = (_find_strongest(card, strategy, one) for strategy in (one.better, one.worse))
        if better and worse:
            under = "" if one.attack == NATURAL else f" at {better.epsilon:g} {card.data.unit}"
            results = f"{better.ensemble} {_format_row(better)}, {worse.ensemble} {_format_row(worse)}{under}"
            (low, high), (other_low, other_high) = _bounds(better), _bounds(worse)
            yield Claim(one.text, results, HOLDS if low > other_high else FAILS if high < other_low else OPEN)
    yield from _check_ensemble_attacks(card)


def _check_ensemble_attacks(card: Scorecard) -> Iterator[Claim]:
    """Beyond the paper: how accurate the best ensemble is under its worst attack on the whole ensemble."""
    rows = [row for row in card.find(target=ENSEMBLE, metric="accuracy") if row.estimate and row.attack != WORST]
    if not rows:
        return
    epsilon = min(row.epsilon for row in rows)
    lowest: dict[str, MetricRow] = {}
    for row in (row for row in rows if row.epsilon == epsilon):
        lowest[row.ensemble] = min(row, lowest.get(row.ensemble, row), key=lambda one: one.value or 0.0)
    best = max(lowest.values(), key=lambda row: row.value or 0.0)
    text = "(not in the paper) an ensemble is right more than half of the time under an attack on all its members"
    low, high = _bounds(best)
    results = (
        f"best: {best.ensemble} {_format_row(best)} of {best.n_records} recordings at {epsilon:g} {card.data.unit}"
    )
    yield Claim(text, results, HOLDS if low > 0.5 else FAILS if high < 0.5 else OPEN)


def _find_strongest(card: Scorecard, strategy: str, claim: _Comparison) -> MetricRow | None:
    """The strategy's result under the strongest attack for which the paper has a result."""
    target = "" if claim.attack == NATURAL else _TARGET
    rows = [
        row
        for row in card.find(metric=claim.metric, attack=claim.attack, target=target, detail="")
        if row.estimate
        and row.strategy
        and without_hardening(row.strategy) == strategy
        and find_paper_value(row, card) is not None
    ]
    return max(rows, key=lambda row: row.epsilon, default=None)


def _format_row(row: MetricRow) -> str:
    value, low, high = (100 * (v or 0.0) for v in (row.value, row.low, row.high))
    return f"{value:.1f} ({low:.1f}–{high:.1f})"


def _bounds(row: MetricRow) -> tuple[float, float]:
    """The interval; where its width is zero, widened by 3/n, a share that could have been missed (rule of three)."""
    low, high = row.low or 0.0, row.high or 0.0
    margin = 3 / row.n_records if low == high else 0.0
    return low - margin, high + margin
