"""Who learns, who tunes, who is tested: stratified by class, seeded, and never a patient in two parts."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.cohorts.cohort import PARTS, Part


def split_parts(
    labels: Sequence[str],
    patients: Sequence[str],
    *,
    seed: int,
    tune: float = 0.1,
    test: float = 0.1,
    fixed_test: Sequence[bool] | None = None,
) -> list[Part | None]:
    """A part for each recording.

    patients:   recordings with the same non-empty name stay together
    fixed_test: the test part, when it is given; recordings of its patients that are not in it get no part (None)

    Classes are dealt out one after another, the first patient of each to train, every other one to the part that
    lacks most; what a part is short of after one class is made up in the next, so that small classes do not starve the
    small parts.
    """
    rng = numpy_generator(seed, "split")
    parts: list[Part | None] = [None] * len(labels)
    barred: set[str] = set()
    if fixed_test is not None:
        parts = ["test" if fixed else None for fixed in fixed_test]
        barred = {name for name, fixed in zip(patients, fixed_test, strict=True) if fixed and name}
        test = 0.0
    shares = dict(zip(PARTS, (1.0 - tune - test, tune, test), strict=True))

    groups: dict[str, list[int]] = defaultdict(list)
    for index, patient in enumerate(patients):
        if parts[index] is None and patient not in barred:
            groups[f"patient {patient}" if patient else f"recording {index}"].append(index)
    by_class: dict[str, list[list[int]]] = defaultdict(list)
    for group in groups.values():
        by_class[Counter(labels[i] for i in group).most_common(1)[0][0]].append(group)

    owed = dict.fromkeys(PARTS, 0.0)
    for label in sorted(by_class):
        dealt = by_class[label]
        size = sum(len(group) for group in dealt)
        for name, share in shares.items():
            owed[name] += share * size
        for turn, position in enumerate(rng.permutation(len(dealt))):
            group = dealt[int(position)]
            open_parts = [name for name in PARTS if shares[name] > 0]
            neediest: Part = "train" if turn == 0 else max(open_parts, key=lambda name: owed[name])
            owed[neediest] -= len(group)
            for index in group:
                parts[index] = neediest
    return parts


def permutation_test_ids(permutation: np.ndarray, ids: Sequence[str]) -> list[str]:
    """The test ids in the authors' way: of the shuffled list of all recordings, what follows the first nine tenths."""
    if permutation.ndim != 1 or sorted(permutation.tolist()) != list(range(len(ids))):
        raise ValueError(f"expected a permutation of {len(ids)} recordings, found {permutation.size} entries")
    return [ids[i] for i in permutation[int(len(ids) * 0.9) :]]
