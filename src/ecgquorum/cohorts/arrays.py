"""Cohorts in memory, from arrays."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.cohorts.cohort import PARTS, Cohort, CohortRow, Part
from ecgquorum.cohorts.split import split_parts
from ecgquorum.errors import CohortError

Signal = NDArray[np.float32]


class ArrayCohort(Cohort):
    """A cohort whose samples are in memory; nothing is read from or written to disk."""

    def __init__(
        self,
        signals: Sequence[Signal],
        rows: Sequence[CohortRow],
        classes: Sequence[str],
        leads: Sequence[str],
        rate_hz: float,
    ) -> None:
        self.path = Path("arrays")
        self._signals = list(signals)
        self.rows = list(rows)
        self.classes, self.leads, self.rate_hz = tuple(classes), tuple(leads), float(rate_hz)
        self.class_names = {name: name for name in self.classes}
        self.card: dict[str, Any] = {"source": "arrays", "classes": list(self.classes), "class_names": self.class_names}
        self.labels = np.array([self._class_index(row) for row in self.rows], dtype=np.int64)

    def __reduce__(self) -> tuple[Callable[..., "ArrayCohort"], tuple[Any, ...]]:
        """Sent to another process as its samples."""
        return type(self), (self._signals, self.rows, self.classes, self.leads, self.rate_hz)

    def signal(self, index: int) -> Signal:
        """Return the samples of a recording, (lead, time)."""
        return self._signals[index]


def cohort_from_arrays(
    x: Any,
    y: Any,
    *,
    classes: Sequence[str] | None = None,
    rate_hz: float,
    leads: Sequence[str] = ("ECG",),
    parts: Sequence[str] | str | None = None,
    seed: int = 0,
) -> ArrayCohort:
    """Return a cohort of recordings in arrays.

    x:       (record, lead, time) or a list of (lead, time) of different lengths, in millivolts; an `InputSpec` with the
             scaling "none" takes them as they are, whatever their unit
    y:       one class per recording: numbers from 0, or names
    classes: names of the classes; by default those in y, sorted
    parts:   "train", "tune" or "test" for each recording, or one of them for all; by default 80, 10 and 10 % at random
    seed:    of that split
    """
    signals = [np.ascontiguousarray(one, dtype=np.float32) for one in x]
    signals = [one[None] if one.ndim == 1 else one for one in signals]
    y = np.asarray(y)
    if len(signals) == 0 or y.shape != (len(signals),):
        raise CohortError(f"expected one class for each of {len(signals)} recordings, found the shape {y.shape}")
    for number, one in enumerate(signals):
        if one.ndim != 2 or len(one) != len(leads) or not np.isfinite(one).all():
            raise CohortError(
                f"recording {number}: expected finite samples of {len(leads)} leads as (lead, time), found {one.shape}"
            )
    is_number = y.dtype.kind in "iu"
    if classes is None:
        classes = [str(i) for i in range(y.max() + 1)] if is_number else [str(name) for name in np.unique(y)]
    if is_number and (y.min() < 0 or y.max() >= len(classes)):
        raise CohortError(f"expected classes from 0 to {len(classes) - 1}, found {y.min()} to {y.max()}")
    labels = [classes[int(one)] if is_number else str(one) for one in y]
    chosen = _choose_parts(parts, labels, seed)
    hashes = [hashlib.sha256(one.tobytes()).hexdigest() for one in signals]
    rows = [
        CohortRow(f"{i:06d}", label, "", part, 0, one.shape[1], sha256)
        for i, (label, part, one, sha256) in enumerate(zip(labels, chosen, signals, hashes, strict=True))
    ]
    return ArrayCohort(signals, rows, classes, leads, rate_hz)


def _choose_parts(parts: Sequence[str] | str | None, labels: Sequence[str], seed: int) -> list[Part]:
    if parts is None:
        return [part or "train" for part in split_parts(labels, [""] * len(labels), seed=seed)]
    names = [parts] * len(labels) if isinstance(parts, str) else list(parts)
    if len(names) != len(labels) or not set(names) <= set(PARTS):
        raise CohortError(f"parts: expected {', '.join(PARTS)} for each of {len(labels)} recordings")
    return names  # type: ignore[return-value]
