"""Split recordings in train, tune and test parts: stratified by class, seeded, no patient in two parts."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.cohorts.cohort import PARTS, Part
from ecgquorum.errors import CohortError


@dataclass(frozen=True)
class SplitOptions:
    """How a cohort is split.

    test_ids: file that fixes the test part: one id on each line, or the authors' permutation as `.npy`; None: at random
    """

    test_ids: str | Path | None = None
    tune_share: float = 0.1
    test_share: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.tune_share > 0 and self.test_share >= 0 and self.tune_share + self.test_share < 1):
            raise CohortError(
                f"expected shares of tune and test that leave some to train, found {self.tune_share}, {self.test_share}"
            )


DEFAULT_SPLIT = SplitOptions()


def split_parts(
    labels: Sequence[str],
    patients: Sequence[str],
    *,
    seed: int,
    tune: float = 0.1,
    test: float = 0.1,
    fixed_test: Sequence[bool] | None = None,
) -> list[Part | None]:
    """Choose a part for each recording.

    patients:   recordings with the same non-empty name stay together
    fixed_test: the test part, if it is given; other recordings of its patients get no part (None)

    Class by class, the first patient goes to train and every other one to the part that lacks most recordings. What a
    part lacks after one class carries over to the next, so that small classes do not leave the small parts short.
    """
    rng = numpy_generator(seed, "split")
    parts: list[Part | None] = [None] * len(labels)
    excluded: set[str] = set()
    if fixed_test is not None:
        parts = ["test" if fixed else None for fixed in fixed_test]
        excluded = {name for name, fixed in zip(patients, fixed_test, strict=True) if fixed and name}
        test = 0.0
    shares = dict(zip(PARTS, (1.0 - tune - test, tune, test), strict=True))

    groups: dict[str, list[int]] = defaultdict(list)
    for index, patient in enumerate(patients):
        if parts[index] is None and patient not in excluded:
            groups[f"patient {patient}" if patient else f"recording {index}"].append(index)
    by_class: dict[str, list[list[int]]] = defaultdict(list)
    for group in groups.values():
        by_class[Counter(labels[i] for i in group).most_common(1)[0][0]].append(group)

    lacking = dict.fromkeys(PARTS, 0.0)
    for label in sorted(by_class):
        shuffled_groups = by_class[label]
        size = sum(len(group) for group in shuffled_groups)
        for name, share in shares.items():
            lacking[name] += share * size
        for turn, position in enumerate(rng.permutation(len(shuffled_groups))):
            group = shuffled_groups[int(position)]
            open_parts = [name for name in PARTS if shares[name] > 0]
            chosen: Part = "train" if turn == 0 else max(open_parts, key=lambda name: lacking[name])
            lacking[chosen] -= len(group)
            for index in group:
                parts[index] = chosen
    return parts


def permutation_test_ids(permutation: np.ndarray, ids: Sequence[str]) -> list[str]:
    """The test ids of the authors' split: the last tenth of the permuted list of all recordings."""
    if permutation.ndim != 1 or sorted(permutation.tolist()) != list(range(len(ids))):
        raise ValueError(f"expected a permutation of {len(ids)} recordings, found {permutation.size} entries")
    return [ids[i] for i in permutation[int(len(ids) * 0.9) :]]
