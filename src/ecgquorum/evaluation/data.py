"""Recordings to evaluate on: a part of a cohort, or arrays."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ecgquorum.cohorts import Batch, Cohort, Part, hold_out_class, make_batch
from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.errors import CohortError
from ecgquorum.evaluation.conditions import choose_records
from ecgquorum.evaluation.transform_conditions import Signal, TransformCondition
from ecgquorum.members import valid_span
from ecgquorum.metrics import Labels
from ecgquorum.preprocessing import InputSpec

EvaluationInput = Cohort | tuple[ArrayLike, ArrayLike]
"""A cohort, or signals (record, lead, time) with labels (record,)."""


class EvaluationData(ABC):
    """Labelled recordings, numbered by their position.

    labels: (record,) · ids, hashes: one for each recording · data_hash: of everything
    """

    source: str
    part: str
    classes: tuple[str, ...]
    class_names: dict[str, str]
    leads: tuple[str, ...]
    rate_hz: float
    n_train: int
    data_hash: str
    labels: Labels
    ids: tuple[str, ...]
    hashes: tuple[str, ...]
    has_traces = True
    """Whether recordings are (lead, time), which can be drawn as examples."""

    def __len__(self) -> int:
        return len(self.labels)

    @abstractmethod
    def batch(self, positions: Labels, spec: InputSpec) -> Batch:
        """Return these recordings in the units of the model's input."""

    @abstractmethod
    def change(self, positions: Labels, rows: Sequence[int], change: TransformCondition, seed: int) -> list[Signal]:
        """Return recordings as a corruption leaves them, or other ones in their place: (lead, time) in millivolts.

        rows: the positions as numbers among the recordings of the condition
        """

    @abstractmethod
    def make_batch(self, signals: list[Signal], positions: Labels, spec: InputSpec) -> Batch:
        """Return changed recordings in the units of the model's input."""

    @property
    def unseen_classes(self) -> dict[str, int]:
        """Classes that the ensembles do not know, and how many recordings the part has of each."""
        return {}

    @abstractmethod
    def unseen_batches(self, spec: InputSpec, size: int) -> Iterator[Batch]:
        """Yield all recordings that the members were not trained on, in batches of at most `size`."""

    @abstractmethod
    def by_length(self, positions: Labels) -> Labels:
        """Return the order of `positions` that puts the shortest recordings first."""

    @abstractmethod
    def millivolts(self, position: int, lead: int, spec: InputSpec) -> tuple[NDArray[np.float32], float]:
        """Return one lead of a recording in millivolts, and the millivolts of one unit of the model's input there."""

    @abstractmethod
    def predict_train(self, ensemble: Ensemble) -> Prediction:
        """Return the ensemble's predictions of the train part of these data."""

    @abstractmethod
    def is_training_cohort(self, card: dict[str, Any]) -> bool:
        """Return whether the ensemble with this card was trained on the train part of these data."""


class CohortData(EvaluationData):
    """One part of a cohort."""

    def __init__(self, cohort: Cohort, part: Part) -> None:
        self.cohort, self.part, self._part = cohort, part, part
        self._indices = cohort.part(part)
        if len(self._indices) == 0:
            raise CohortError(f"{cohort.path}: the {part} part has no recordings; choose another part to evaluate on")
        self.source = str(cohort.card["source"])
        self.classes, self.class_names = cohort.classes, cohort.class_names
        self.leads, self.rate_hz = cohort.leads, cohort.rate_hz
        self.n_train, self.data_hash = len(cohort.part("train")), cohort.data_hash
        self.labels = cohort.labels[self._indices]
        self.ids = tuple(cohort.rows[i].id for i in self._indices)
        self.hashes = tuple(cohort.rows[i].sha256 for i in self._indices)

    def batch(self, positions: Labels, spec: InputSpec) -> Batch:
        """Return these recordings scaled and brought to the window that `spec` asks for."""
        return self.cohort.batch(self._indices[positions], spec)

    def change(self, positions: Labels, rows: Sequence[int], change: TransformCondition, seed: int) -> list[Signal]:
        """Change the recordings at their own length; the random numbers depend on the recording and the kind."""
        cohort = self.cohort
        if change.unseen:
            drawn = choose_records(self.unseen_classes[change.unseen], change.records, seed)
            return [cohort.unseen_signal(change.unseen, self._part, int(drawn[row])) for row in rows]
        return [
            change.apply(cohort.signal(int(self._indices[i])), cohort.rate_hz, cohort.leads, self.hashes[i], seed)
            for i in positions
        ]

    def make_batch(self, signals: list[Signal], positions: Labels, spec: InputSpec) -> Batch:
        """Scale the recordings and bring them to the window that `spec` asks for."""
        labels = self.labels[positions].tolist()
        return make_batch([spec.scale(signal) for signal in signals], spec.n_window, labels)

    @property
    def unseen_classes(self) -> dict[str, int]:
        """Classes of the cohort that a mapping of its labels left out."""
        return self.cohort.count_unseen(self._part)

    def unseen_batches(self, spec: InputSpec, size: int) -> Iterator[Batch]:
        """Yield the part, and the tune part too where the test part is evaluated."""
        indices = self._indices
        if self.part == "test":
            indices = np.concatenate([self.cohort.part("tune"), indices])
        return (self.cohort.batch(indices[start : start + size], spec) for start in range(0, len(indices), size))

    def by_length(self, positions: Labels) -> Labels:
        """Return the order of `positions` that puts the shortest recordings first."""
        return self.cohort.by_length(self._indices[positions])

    def millivolts(self, position: int, lead: int, spec: InputSpec) -> tuple[NDArray[np.float32], float]:
        """Return one lead in millivolts, and the factor between its peaks in millivolts and in the model's input."""
        signal = self.cohort.signal(int(self._indices[position]))
        peak, scaled_peak = (float(np.abs(leads[lead]).max()) for leads in (signal, spec.scale(signal)))
        return np.array(signal[lead]), peak / scaled_peak if peak else 1e-3

    def predict_train(self, ensemble: Ensemble) -> Prediction:
        """Return the ensemble's predictions of the cohort's train part."""
        return ensemble.predict_part(self.cohort, "train")

    def is_training_cohort(self, card: dict[str, Any]) -> bool:
        """Compare the data hashes."""
        return bool(card.get("data_hash") == self.data_hash)


class ArrayData(EvaluationData):
    """Signals in the units of the model's input, given to it as they are; zeros at both ends are padding.

    signal: (record, lead, time), or (record, channel, ...) for networks of other kinds, without padding
    labels: (record,), numbers of classes
    """

    def __init__(self, signal: ArrayLike, labels: ArrayLike, ensemble: Ensemble) -> None:
        self._signal = np.ascontiguousarray(_as_array(signal), dtype=np.float32)
        self.labels = np.asarray(_as_array(labels), dtype=np.int64)
        spec = ensemble.input
        self.source, self.part, self.n_train = "arrays", "test", 0
        self.classes, self.class_names = ensemble.classes, {name: name for name in ensemble.classes}
        self.leads, self.rate_hz = spec.leads, spec.rate_hz
        self._factor = 1e-3 if spec.scaling == "microvolt" else 1.0
        self._check()
        self.has_traces = self._signal.ndim == 3
        self.ids = tuple(str(number) for number in range(len(self.labels)))
        self.hashes = tuple(hashlib.sha256(one.tobytes()).hexdigest() for one in self._signal)
        about = "\0".join((*self.classes, *map(str, self.labels), *self.hashes))
        self.data_hash = hashlib.sha256(about.encode()).hexdigest()

    def batch(self, positions: Labels, spec: InputSpec) -> Batch:  # noqa: ARG002 (they are in its units already)
        """Return these recordings as they are."""
        signal = torch.from_numpy(self._signal[positions])
        valid = valid_span(signal) > 0 if self.has_traces else torch.ones_like(signal, dtype=torch.bool)
        return Batch(signal, valid, torch.from_numpy(self.labels[positions]))

    def change(self, positions: Labels, rows: Sequence[int], change: TransformCondition, seed: int) -> list[Signal]:  # noqa: ARG002
        """Change the recordings, which keep their padding; input that is not in microvolts is taken for millivolts."""
        if not self.has_traces:
            raise CohortError("corruptions need recordings as (record, lead, time)")
        return [
            change.apply(self._factor * self._signal[i], self.rate_hz, self.leads, self.hashes[i], seed, self._valid[i])
            for i in positions
        ]

    def make_batch(self, signals: list[Signal], positions: Labels, spec: InputSpec) -> Batch:
        """Scale the changed recordings, which are in millivolts, to the units of the input again."""
        signal = torch.from_numpy(np.stack([spec.scale(one) for one in signals]))
        valid = torch.from_numpy(self._valid[positions][:, None])
        return Batch(signal, valid, torch.from_numpy(self.labels[positions]))

    def unseen_batches(self, spec: InputSpec, size: int) -> Iterator[Batch]:
        """Yield all recordings."""
        return (self.batch(some, spec) for some in np.split(np.arange(len(self)), range(size, len(self), size)))

    def by_length(self, positions: Labels) -> Labels:
        """Return the order of `positions` that puts the shortest recordings first."""
        if not self.has_traces:
            return np.arange(len(positions))
        return np.argsort(self._valid.sum(axis=1)[positions], kind="stable")

    def millivolts(self, position: int, lead: int, spec: InputSpec) -> tuple[NDArray[np.float32], float]:  # noqa: ARG002
        """Return one lead in millivolts; input that is scaled to its peak is returned as it is."""
        inside = self._valid[position]
        return np.asarray(self._factor * self._signal[position, lead, inside], dtype=np.float32), self._factor

    def predict_train(self, ensemble: Ensemble) -> Prediction:  # noqa: ARG002
        """Raise an error: arrays have no train part."""
        raise CohortError("arrays have no train part; evaluate on a cohort")

    def is_training_cohort(self, card: dict[str, Any]) -> bool:  # noqa: ARG002
        """Return True: arrays belong to no cohort that could differ."""
        return True

    @cached_property
    def _valid(self) -> NDArray[np.bool_]:
        return np.asarray(valid_span(torch.from_numpy(self._signal))[:, 0].numpy() > 0)

    def _check(self) -> None:
        shape, n_leads = self._signal.shape, len(self.leads)
        if self._signal.ndim < 3 or shape[1] != n_leads:
            raise CohortError(
                f"x has the shape {shape}; the ensemble's input is (record, {n_leads}, time) at {self.rate_hz:g} Hz"
            )
        if self.labels.shape != shape[:1] or not len(self.labels):
            raise CohortError(f"y has the shape {self.labels.shape}; expected one label for each of {shape[0]} records")
        if self.labels.min() < 0 or self.labels.max() >= len(self.classes):
            raise CohortError(f"y must hold class numbers from 0 to {len(self.classes) - 1}")
        if not np.isfinite(self._signal).all():
            raise CohortError("x must be finite; fill gaps before evaluating")


def open_data(data: EvaluationInput, part: Part, ensemble: Ensemble) -> EvaluationData:
    """Wrap a part of a cohort, or arrays that are in the units of the ensemble's input."""
    if isinstance(data, Cohort):
        return CohortData(hold_out_class(data, ensemble.card.get("hold_out"), required=False), part)
    signal, labels = data
    return ArrayData(signal, labels, ensemble)


def _as_array(values: ArrayLike) -> NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
