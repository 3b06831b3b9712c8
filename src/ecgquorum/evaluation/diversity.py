"""How different an ensemble's members are on recordings that none was trained on, with intervals."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations

import numpy as np

from ecgquorum.ensemble.diversity import adjusted_r2, linear_cka
from ecgquorum.evaluation.metric_rows import UNDEFINED, Answers, Measured
from ecgquorum.metrics.measures import Array, Estimate, Flags, bootstrap, jackknife


def diversity_rows(features: Sequence[Array | None], answers: Answers) -> Iterator[Measured]:
    """Every pair of members compared; `features` is one (record, feature) array a member, None where it has none.

    Features may be of more recordings than `answers`. A fit to recordings drawn with replacement is better than it
    should be, so the intervals of what is measured on features come from a jackknife.
    """

    def of_features(name: str, measure: Callable[[Array, Array], float], i: int, j: int, arrow: str) -> Measured:
        one, other = features[i], features[j]
        if one is None or other is None:
            return Measured(name, f"{i}{arrow}{j}", UNDEFINED, "a member that gives no features")
        found = jackknife(lambda kept: measure(one[kept], other[kept]), len(one))
        few = "" if np.isfinite(found.value) else f"{len(one)} recordings are too few for {one.shape[1]} features"
        return Measured(name, f"{i}{arrow}{j}", found, few, len(one))

    for i, j in permutations(range(len(features)), 2):
        yield of_features("adjusted_r2", adjusted_r2, i, j, "→")
    said = answers.member_probs.argmax(axis=2)
    wrong = said != answers.truth[:, None]
    for i, j in combinations(range(len(features)), 2):
        yield of_features("linear_cka", linear_cka, i, j, ", ")
        differ = said[:, i] != said[:, j]
        disagreement = bootstrap(partial(_mean, differ), len(said))
        yield Measured("disagreement", f"{i}, {j}", disagreement)
        correlation = _error_correlation(wrong[:, i], wrong[:, j])
        reason = "" if np.isfinite(correlation.value) else "a member makes no errors, or only errors"
        yield Measured("error_correlation", f"{i}, {j}", correlation, reason)


def _error_correlation(one: Flags, other: Flags) -> Estimate:
    def measure(weights: Array) -> Array:
        a, b = _mean(one, weights), _mean(other, weights)
        spread = np.sqrt(a * (1 - a) * b * (1 - b))
        shared = _mean(one & other, weights) - a * b
        return np.asarray(np.divide(shared, spread, out=np.full_like(a, np.nan), where=spread > 1e-12))

    return bootstrap(measure, len(one))


def _mean(flags: Flags, weights: Array) -> Array:
    return np.asarray(weights @ flags / weights.sum(axis=1))
