"""Paired comparisons: how much better one strategy is than another on the same recordings.

Every ensemble predicts the same recordings, so the difference of two strategies gets an interval of its own by a paired
bootstrap. That two intervals overlap says nothing about it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ecgquorum import metrics
from ecgquorum.evaluation.conditions import ALL_CORRUPTIONS, CORRUPTION, OOD, Condition
from ecgquorum.evaluation.corruption_summary import CorruptedPredictions, collect_corruptions, mean_accuracy, mean_augrc
from ecgquorum.evaluation.metric_rows import RECIPE_TABLES, EnsembleFacts
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import Array, Metric, paired_difference, replicate
from ecgquorum.metrics.scores import mutual_information
from ecgquorum.metrics.uncertainty import widen_range

COMPARED_SCORES = ("confidence", "mutual_information", "risk")
"""Scores by which strategies are compared under all corruptions together."""


@dataclass(frozen=True)
class Comparison:
    """A metric of two strategies under one condition, and the difference of the first from the second.

    first, second: names of ensembles: the trainings of one strategy, with one or several seeds, that were evaluated
    metric:        "accuracy"; "r_iu_authors": R_iu as in the authors' notebook, whatever `normalise` is; under
                   all corruptions together "augrc_confidence", "augrc_mutual_information" and "augrc_risk"
    values:        of the first and of the second, each the mean over its seeds
    spreads:       standard deviations over seeds; None for one seed
    difference:    with the 2.5 % and 97.5 % quantiles over recordings that are drawn for both sides alike
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    attack: str
    target: str
    epsilon: float
    metric: str
    values: tuple[float, float]
    spreads: tuple[float | None, float | None]
    difference: tuple[float, float, float]
    n_records: int


@dataclass(frozen=True)
class EnsembleGroup:
    """Trainings of one strategy that differ in the seed alone: their numbers and names."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    facts: EnsembleFacts


def group_by_strategy(ensembles: Sequence[EnsembleFacts]) -> list[EnsembleGroup]:
    """Group ensembles whose recipes differ in name, seed and risk alone; one without a strategy is by itself.

    Scorecards of earlier versions have no hashes of recipes: there, strategy, network and deviations must be equal.
    """
    found: dict[tuple[object, ...], list[int]] = {}
    for number, one in enumerate(ensembles):
        recipe = (one.strategy, one.network, one.members, one.deviations, one.recipe_hashes)
        key = recipe if one.strategy else (number,)
        found.setdefault(key, []).append(number)
    return [
        EnsembleGroup(tuple(numbers), tuple(ensembles[e].name for e in numbers), ensembles[numbers[0]])
        for numbers in found.values()
    ]


def compare_ensembles(
    ensembles: Sequence[EnsembleFacts],
    conditions: Sequence[Condition],
    records: Sequence[NDArray[np.int64]],
    predictions: Mapping[tuple[int, int], LabelledPredictions],
) -> Iterator[Comparison]:
    """Compare every two strategies that are otherwise trained alike, under every condition that both have.

    All corruptions together are a condition too; recordings out of distribution are none, since they have no label.
    """
    groups = [group for group in group_by_strategy(ensembles) if group.facts.strategy]
    pairs = [(one, other) for one, other in combinations(groups, 2) if _is_alike(one.facts, other.facts)]
    for number, condition in enumerate(conditions) if pairs else ():
        if condition.target == OOD:
            continue
        found = {e: predictions[e, number] for e in range(len(ensembles)) if (e, number) in predictions}
        for name, make_metric in _METRICS.items():
            replicates = {
                e: replicate(make_metric(one, predictions[e, 0]), len(one.labels))
                for e, one in found.items()
                if name == "accuracy" or not one.single_member
            }
            for pair in pairs:
                sides = [{ensembles[e].name: replicates[e] for e in one.numbers if e in replicates} for one in pair]
                if all(sides):
                    n_records = len(found[next(e for e in pair[0].numbers if e in found)].labels)
                    yield from _compare(sides, condition, name, n_records)

    if pairs and any(condition.target == CORRUPTION for condition in conditions):
        yield from _compare_under_corruptions(ensembles, pairs, conditions, records, predictions)


def _compare_under_corruptions(
    ensembles: Sequence[EnsembleFacts],
    pairs: list[tuple[EnsembleGroup, EnsembleGroup]],
    conditions: Sequence[Condition],
    records: Sequence[NDArray[np.int64]],
    predictions: Mapping[tuple[int, int], LabelledPredictions],
) -> Iterator[Comparison]:
    """Compare the means over all corruptions: accuracy, and AUGRC by scores."""
    found = {
        e: corrupted
        for e in range(len(ensembles))
        if (
            corrupted := collect_corruptions(conditions, records, {c: p for (i, c), p in predictions.items() if i == e})
        )
    }
    condition = Condition(ALL_CORRUPTIONS, CORRUPTION)
    makers: dict[str, Callable[[CorruptedPredictions], Metric | None]] = {
        "accuracy": mean_accuracy,
        **{f"augrc_{score}": partial(_choose_mean_augrc, score=score) for score in COMPARED_SCORES},
    }
    for name, make_metric in makers.items():
        made = {e: (make_metric(one), one.n_records) for e, one in found.items()}
        replicates = {e: replicate(metric, n_records) for e, (metric, n_records) in made.items() if metric}
        for pair in pairs:
            numbers = [[e for e in group.numbers if e in replicates] for group in pair]
            if all(numbers) and all(found[numbers[0][0]].is_paired(found[e]) for several in numbers for e in several):
                sides = [{ensembles[e].name: replicates[e] for e in several} for several in numbers]
                yield from _compare(sides, condition, name, found[numbers[0][0]].n_records)


def _choose_mean_augrc(corrupted: CorruptedPredictions, score: str) -> Metric | None:
    """The mean AUGRC by a score; None for an ensemble without this score, such as a risk that was not fitted."""
    return mean_augrc(corrupted, score) if score in corrupted.natural.scores() else None


def _is_alike(one: EnsembleFacts, other: EnsembleFacts) -> bool:
    """Whether two ensembles differ in nothing but their strategies and seeds."""
    same = (one.network, one.members) == (other.network, other.members)
    return same and not one.differs_in(other, RECIPE_TABLES)


def _compare(sides: list[dict[str, Array]], condition: Condition, metric: str, n_records: int) -> Iterator[Comparison]:
    """The comparison, where the metric is defined on both sides.

    sides: name of each training -> replicates of the metric
    """
    found = paired_difference(*(list(side.values()) for side in sides))
    if found.is_defined:
        values = [np.array([replicates[0] for replicates in side.values()]) for side in sides]
        means = [_round(float(side.mean())) for side in values]
        spreads = [_round(float(side.std(ddof=1))) if len(side) > 1 else None for side in values]
        yield Comparison(
            first=tuple(sides[0]),
            second=tuple(sides[1]),
            attack=condition.attack,
            target=condition.target,
            epsilon=condition.epsilon,
            metric=metric,
            values=(means[0], means[1]),
            spreads=(spreads[0], spreads[1]),
            difference=(_round(found.value), _round(found.low), _round(found.high)),
            n_records=n_records,
        )


def _round(value: float) -> float:
    """Six decimals: far finer than any interval, and a scorecard stays small."""
    return round(value, 6)


def _accuracy(predictions: LabelledPredictions, natural: LabelledPredictions) -> Metric:  # noqa: ARG001 (as the other)
    return partial(metrics.accuracy, predictions.correct)


def authors_r_iu(predictions: LabelledPredictions, natural: LabelledPredictions) -> Metric:
    """R_iu with uncertainty normalised by its range on the natural recordings, as the mean over thresholds.

    That is the mean over incorrect predictions of the share of thresholds that their uncertainty exceeds. The range is
    that of all natural recordings in every draw, as it would be fixed before use.
    """
    information = mutual_information(natural.raw_member_probs)
    low, high = widen_range(float(information.min()), float(information.max()))
    uncertainty = (mutual_information(predictions.raw_member_probs) - low) / (high - low)
    exceeded = (np.clip(uncertainty, 0, 1)[:, None] > metrics.thresholds()).mean(axis=1)
    errors = ~predictions.correct
    return lambda weights: metrics.weighted_mean(exceeded, weights * errors)


_METRICS: dict[str, Callable[[LabelledPredictions, LabelledPredictions], Metric]] = {
    "accuracy": _accuracy,
    "r_iu_authors": authors_r_iu,
}
