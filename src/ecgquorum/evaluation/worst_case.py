"""The worst of several conditions, recording by recording."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ecgquorum.evaluation.conditions import Condition
from ecgquorum.evaluation.predictions import LabelledPredictions


def worst_of_all(
    conditions: Sequence[Condition],
    records: Sequence[NDArray[np.int64]],
    predictions: Mapping[int, LabelledPredictions],
) -> Iterator[tuple[float, LabelledPredictions]]:
    """For each strength, each recording's prediction with the smallest margin under any attack up to it.

    Natural recordings count as strength 0. Only recordings that all conditions cover are taken, so that accuracy never
    rises with the strength.

    predictions: number of the condition -> predictions of `records` of that number
    """
    numbers = [0, *(i for i, condition in enumerate(conditions) if condition.is_attack)]
    conditions, records = [conditions[i] for i in numbers], [records[i] for i in numbers]
    common = records[0]
    for positions in records:
        common = np.intersect1d(common, positions)
    covered = [predictions[i].at(np.searchsorted(one, common)) for i, one in zip(numbers, records, strict=True)]
    for epsilon in sorted({condition.epsilon for condition in conditions[1:]}):
        under = [one for one, condition in zip(covered, conditions, strict=True) if condition.epsilon <= epsilon]
        worst, rows = np.argmin([one.margin for one in under], axis=0), np.arange(len(common))
        probs = np.stack([one.raw_member_probs for one in under])[worst, rows]
        uncertainty = np.stack([one.uncertainty for one in under])[worst, rows]
        scores = {
            name: np.stack([one.fitted_scores[name] for one in under])[worst, rows]
            for name in covered[0].fitted_scores
            if all(name in one.fitted_scores for one in under)
        }
        yield epsilon, LabelledPredictions(covered[0].labels, probs, uncertainty, covered[0].temperature, scores)
