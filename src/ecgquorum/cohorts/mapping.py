"""A cohort as a model of other classes, leads and rate sees it: another device, another hospital, a class held out."""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.cohorts.cohort import Cohort, Part
from ecgquorum.errors import CohortError
from ecgquorum.preprocessing import InputSpec


@dataclass(frozen=True)
class LabelMap:
    """Which class of a model each class of a cohort is; classes that are not named are left out.

    labels: class of the cohort -> class of the model
    lead:   of the cohort, for a model of one lead; None: the only one, or the model's lead by its name
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    lead: str | None = None


def load_label_map(path: str | Path) -> LabelMap:
    """Read a TOML file with a table `labels`, such as AF = "A", and optionally lead = "II"."""
    try:
        document = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise CohortError(f"{path}: cannot read the labels: {error.strerror}") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise CohortError(f"{path}: expected TOML, found: {error}") from error
    unknown = sorted(document.keys() - {"labels", "lead"})
    if unknown:
        raise CohortError(f"{path}: unknown key {unknown[0]}; known: labels, lead")
    labels, lead = document.get("labels"), document.get("lead")
    if not isinstance(labels, dict) or not labels or not all(isinstance(one, str) for one in labels.values()):
        raise CohortError(
            f'{path}: expected a table [labels] with lines such as AF = "A": a class of the cohort, then of the model'
        )
    if lead is not None and not isinstance(lead, str):
        raise CohortError(f'{path}: expected lead = "II", found {lead!r}')
    return LabelMap(labels, lead)


class MappedCohort(Cohort):
    """Those recordings of a cohort whose class a model knows, with its classes, leads and rate.

    Converted when they are read, so nothing is written to disk. Recordings of other classes can serve as an
    out-of-distribution set (`count_unseen`, `unseen_signal`).
    """

    def __init__(self, base: Cohort, classes: Sequence[str], spec: InputSpec, labels: LabelMap) -> None:
        self.base, self.map, self._spec = base, labels, replace(spec, scaling="none")
        self.path, self.card = base.path, base.card
        self.classes, self.leads, self.rate_hz = tuple(classes), spec.leads, spec.rate_hz
        self._check()
        self._converts = (base.leads, base.rate_hz) != (self.leads, self.rate_hz) or labels.lead is not None
        self._indices = [i for i, row in enumerate(base.rows) if row.label in labels.labels]
        self.rows = [self._map_row(index) for index in self._indices]
        names = {new: base.class_names.get(old, old) for old, new in labels.labels.items()}
        self.class_names = {name: names.get(name, name) for name in self.classes}
        self.labels = np.array([self._class_index(row) for row in self.rows], dtype=np.int64)

    def __reduce__(self) -> tuple[Callable[..., "MappedCohort"], tuple[Any, ...]]:
        """Sent to another process as its parts."""
        return type(self), (self.base, self.classes, self._spec, self.map)

    def signal(self, index: int) -> NDArray[np.float32]:
        """(lead, time) in millivolts, with the leads and rate of the model."""
        return self._convert(self._indices[index])

    def count_unseen(self, part: Part) -> dict[str, int]:
        """Classes that are left out, and how many recordings of the part have them."""
        found = Counter(row.label for row in self.base.rows if row.part == part and row.label not in self.map.labels)
        return {name: found[name] for name in self.base.classes if name in found}

    def unseen_signal(self, name: str, part: Part, number: int) -> NDArray[np.float32]:
        """(lead, time) of a recording of a class that is left out, by its number in the part."""
        found = [i for i, row in enumerate(self.base.rows) if (row.part, row.label) == (part, name)]
        return self._convert(found[number])

    def verify(self) -> None:
        """Read every sample of the cohort behind it; raise if one has changed since it was built."""
        self.base.verify()

    def describe(self, part: Part) -> list[str]:
        """What was mapped and what was left out, in lines."""
        counts = Counter(row.label for row in self.base.rows if row.part == part)
        lines = [f"{old} → {new}: {counts[old]} recordings" for old, new in self.map.labels.items()]
        left_out = [f"{name} ({count})" for name, count in self.count_unseen(part).items()]
        lines.append(f"left out: {', '.join(left_out) or 'nothing'}")
        missing = [name for name in self.classes if name not in self.map.labels.values()]
        if missing:
            lines.append(f"no recordings of the model's classes {', '.join(missing)}")
        if self._converts:
            lead = f" (lead {self.map.lead})" if self.map.lead else ""
            lines.append(
                f"{', '.join(self.base.leads)} at {self.base.rate_hz:g} Hz → "
                f"{', '.join(self.leads)}{lead} at {self.rate_hz:g} Hz"
            )
        return lines

    def _convert(self, index: int) -> NDArray[np.float32]:
        if not self._converts:
            return self.base.signal(index)
        return self._spec.fit(self.base.recording(index), self.map.lead)

    def _map_row(self, index: int) -> Any:
        """The row with the model's class; its hash also tells how the samples are converted."""
        row = self.base.rows[index]
        mapped = replace(row, label=self.map.labels[row.label])
        if not self._converts:
            return mapped
        how = f"{row.sha256} {self.base.leads} {self.map.lead} {self.base.rate_hz:g}"
        n_samples = int(np.ceil(row.n_samples * self.rate_hz / self.base.rate_hz))
        return replace(mapped, n_samples=n_samples, sha256=hashlib.sha256(how.encode()).hexdigest())

    def _check(self) -> None:
        """Raise an error for classes that do not exist, and for leads that cannot be made, before any work."""
        for old, new in self.map.labels.items():
            if old not in self.base.classes:
                raise CohortError(
                    f"labels: the cohort has no class {old!r}; it has: {', '.join(self.base.classes)} "
                    "(a line is: class of the cohort = class of the model)"
                )
            if new not in self.classes:
                raise CohortError(f"labels: the model has no class {new!r}; it has: {', '.join(self.classes)}")
        first = next((i for i, row in enumerate(self.base.rows) if row.label in self.map.labels), None)
        if first is None:
            raise CohortError("labels: no recording of the cohort has one of these classes")
        self._spec.fit(self.base.recording(first), self.map.lead)


def hold_out_class(cohort: Cohort, name: str | None, *, required: bool = True) -> Cohort:
    """Return the cohort without the recordings of one class, which becomes an unseen one; None: as it is.

    required: whether a cohort that does not have the class is an error, or returned as it is
    """
    if name is None or (
        isinstance(cohort, MappedCohort) and name in cohort.base.classes and name not in cohort.classes
    ):
        return cohort
    if name not in cohort.classes and not required:
        return cohort
    if name not in cohort.classes or len(cohort.classes) < 3:
        raise CohortError(
            f"hold_out: expected one of at least three classes, {', '.join(cohort.classes)}, found {name!r}"
        )
    classes = [one for one in cohort.classes if one != name]
    spec = InputSpec(cohort.leads, cohort.rate_hz)
    return MappedCohort(cohort, classes, spec, LabelMap({one: one for one in classes}))
