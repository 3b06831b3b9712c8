"""The worst of several conditions, recording by recording."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ecgquorum.evaluation.conditions import Condition
from ecgquorum.evaluation.metric_rows import Answers


def worst_of_all(
    conditions: Sequence[Condition], records: Sequence[NDArray[np.int64]], answers: Mapping[int, Answers]
) -> Iterator[tuple[float, Answers]]:
    """For each strength the answer that went most wrong under any condition up to it, natural recordings included.

    On the recordings that all conditions cover, so that a stronger attack is never the milder one.

    answers: condition's number -> what was said of `records` of that number
    """
    common = records[0]
    for places in records:
        common = np.intersect1d(common, places)
    said = [answers[i].at(np.searchsorted(records[i], common)) for i in range(len(conditions))]
    for epsilon in sorted({condition.epsilon for condition in conditions[1:]}):
        under = [one for one, condition in zip(said, conditions, strict=True) if condition.epsilon <= epsilon]
        worst, places = np.argmin([one.margin for one in under], axis=0), np.arange(len(common))
        probs = np.stack([one.member_probs for one in under])[worst, places]
        uncertainty = np.stack([one.uncertainty for one in under])[worst, places]
        yield epsilon, Answers(said[0].truth, probs, uncertainty, said[0].temperature)
