"""All corruptions together: accuracy, AUGRC, and the corruption error relative to a reference ensemble.

With E(s, c) the error rate under corruption c at severity s, E(0) that on natural recordings, and E' those of the
reference (Hendrycks & Dietterich 2019):
    mean corruption error     = mean_c [ sum_s E(s, c) / sum_s E'(s, c) ]
    relative corruption error = mean_c,s [ E(s, c) - E(0) ] / mean_c,s [ E'(s, c) - E'(0) ]
The second is a quotient of means, since a corruption that costs the reference nothing has no quotient of its own. In
the first, a corruption under which the reference makes no error is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ecgquorum import metrics
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.conditions import ALL_CORRUPTIONS, CORRUPTION, Condition
from ecgquorum.evaluation.metric_rows import EnsembleFacts, MetricRow, make_row
from ecgquorum.evaluation.metric_values import MetricValue, is_silent
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import Array, Metric, bootstrap
from ecgquorum.metrics.weighting import ratio


@dataclass(frozen=True, eq=False)
class CorruptedPredictions:
    """What an ensemble predicts for the recordings that all its corruptions cover.

    positions: of these recordings among the evaluated ones
    kinds:     name of each corruption -> severity -> predictions
    """

    positions: NDArray[np.int64]
    natural: LabelledPredictions
    kinds: dict[str, dict[float, LabelledPredictions]]

    @property
    def n_records(self) -> int:
        """Recordings that all corruptions cover."""
        return len(self.positions)

    def errors(self) -> Array:
        """(corruption, record): the share of severities at which the prediction is wrong."""
        return np.stack([np.mean([~one.correct for one in by.values()], axis=0) for by in self.kinds.values()])

    def is_paired(self, other: "CorruptedPredictions") -> bool:
        """Whether both are of the same recordings under the same corruptions at the same severities."""
        severities, others = ([(name, sorted(by)) for name, by in one.kinds.items()] for one in (self, other))
        return np.array_equal(self.positions, other.positions) and severities == others


def collect_corruptions(
    conditions: Sequence[Condition],
    records: Sequence[NDArray[np.int64]],
    predictions: Mapping[int, LabelledPredictions],
) -> CorruptedPredictions | None:
    """Collect an ensemble's predictions under all corruptions; None if it was evaluated under none.

    predictions: number of the condition -> predictions of `records` of that number
    """
    numbers = [c for c, one in enumerate(conditions) if one.target == CORRUPTION and c in predictions]
    if not numbers:
        return None
    common = records[0]
    for number in numbers:
        common = np.intersect1d(common, records[number])
    covered = {c: predictions[c].at(np.searchsorted(records[c], common)) for c in (0, *numbers)}
    kinds: dict[str, dict[float, LabelledPredictions]] = {}
    for number in numbers:
        kinds.setdefault(conditions[number].attack, {})[conditions[number].epsilon] = covered[number]
    return CorruptedPredictions(common, covered[0], kinds)


def check_reference(names: Iterable[str], wanted: str) -> None:
    """Raise an error if no ensemble has the name of the reference; "" stands for the default."""
    names = list(names)
    if wanted and wanted not in names:
        raise ScorecardError(f"there is no ensemble {wanted!r} to compare with; known: {', '.join(names)}")


def choose_reference(ensembles: Sequence[EnsembleFacts], wanted: str = "") -> int:
    """Number of the ensemble called `wanted`; by default the first of the strategy "baseline", or of all."""
    if wanted:
        return [one.name for one in ensembles].index(wanted)
    return next((e for e, one in enumerate(ensembles) if one.strategy == "baseline"), 0)


def summary_rows(
    ensembles: Sequence[EnsembleFacts],
    data: str,
    conditions: Sequence[Condition],
    records: Sequence[NDArray[np.int64]],
    predictions: Mapping[tuple[int, int], LabelledPredictions],
    pair: tuple[int, int],
) -> Iterator[MetricRow]:
    """The summary of an ensemble as rows.

    pair: numbers of the ensemble and of the reference
    """
    own, reference = (
        collect_corruptions(conditions, records, {c: found for (i, c), found in predictions.items() if i == e})
        for e in pair
    )
    if own is not None:
        for value in summary_values(own, reference, ensembles[pair[1]].name):
            yield make_row(ensembles[pair[0]], data, Condition(ALL_CORRUPTIONS, CORRUPTION), own.n_records, value)


def summary_values(
    own: CorruptedPredictions, reference: CorruptedPredictions | None, reference_name: str
) -> Iterator[MetricValue]:
    """Means over severities, then over corruptions; errors relative to the reference where it has the same ones."""
    n_records = own.n_records
    yield MetricValue("accuracy", "", bootstrap(mean_accuracy(own), n_records))
    for score in own.natural.scores():
        if not is_silent(own.natural, score):
            yield MetricValue("augrc", score, bootstrap(mean_augrc(own, score), n_records))
    if reference is None or not own.is_paired(reference):
        return
    mine, theirs = own.errors(), reference.errors()
    clean, their_clean = ~own.natural.correct, ~reference.natural.correct

    def mean_error(weights: Array) -> Array:
        quotients = ratio(weights @ mine.T, weights @ theirs.T)
        defined = np.isfinite(quotients)
        return ratio(np.where(defined, quotients, 0.0).sum(axis=1), defined.sum(axis=1).astype(np.float64))

    def relative_error(weights: Array) -> Array:
        lost = [weights @ (errors.mean(axis=0) - base) for errors, base in ((mine, clean), (theirs, their_clean))]
        return ratio(*lost)

    costs_nothing = "corruptions cost the reference no accuracy"
    for name, metric in (("mean_corruption_error", mean_error), ("relative_corruption_error", relative_error)):
        found = bootstrap(metric, n_records)
        yield MetricValue(name, reference_name, found, "" if found.is_defined else costs_nothing)


def mean_accuracy(corrupted: CorruptedPredictions) -> Metric:
    """Accuracy, the mean over severities, then over corruptions."""
    return partial(metrics.weighted_mean, np.asarray(1 - corrupted.errors().mean(axis=0)))


def mean_augrc(corrupted: CorruptedPredictions, score: str) -> Metric:
    """AUGRC by a score, the mean over severities, then over corruptions."""
    pairs = [[(~one.correct, one.scores()[score]) for one in by.values()] for by in corrupted.kinds.values()]

    def metric(weights: Array) -> Array:
        areas = [np.mean([metrics.augrc(*pair, weights) for pair in several], axis=0) for several in pairs]
        return np.asarray(np.mean(areas, axis=0))

    return metric
