"""Several members that predict together."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ecgquorum.cohorts import Batch, Cohort, Part, make_batch
from ecgquorum.ensemble.distance import FeatureDistance
from ecgquorum.ensemble.prediction import Prediction
from ecgquorum.ensemble.risk import RiskModel
from ecgquorum.errors import FittingError, QualityWarning
from ecgquorum.members import forward_with_features
from ecgquorum.preprocessing import InputSpec
from ecgquorum.preprocessing.input_spec import WHOLE_WINDOWS, Signal, Windowing, select_leads
from ecgquorum.preprocessing.quality import assess_quality
from ecgquorum.recordings import Recording, read, recordings_from_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Input = str | Path | Recording
"""A recording, or the path of one."""

_BATCH = 32
_AHEAD = 4 * _BATCH
"""So many windows are sorted by length before they are put into batches."""


class Ensemble(nn.Module):
    """Members and what they need to know about their input.

    forward(x) is a classifier like any other: (batch, lead, time) -> ln mean_k softmax(member_k(x)), (batch, class).

    members:           any `nn.Module`s from (batch, lead, time) to logits (batch, class)
    input:             leads, rate, scale and window of what the members take
    information_range: (I_min, I_max) of the training set, which uncertainty is normalised by; (0, ln min(K, C)) until
                       it is measured
    robust_information_range: (0, 99.9 % quantile of I on the training set), which no single recording decides; assign
                       it to `information_range` to use it instead; None until it is measured
    temperature:       of calibrated probabilities; 1 until it is fitted
    card:              what the bundle's card says beyond that; empty for an ensemble that was never stored

    `fit_risk` sets two more attributes, None until then:
    distance:   the distance of features from those of the training recordings
    risk_model: the estimate of the probability that a label is wrong
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        classes: Sequence[str],
        input: InputSpec,  # noqa: A002 (the name that users write)
        information_range: tuple[float, float] | None = None,
        card: dict[str, Any] | None = None,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.classes = tuple(classes)
        self.input = input
        self.information_range = information_range or (0.0, math.log(max(2, min(len(members), len(classes)))))
        self.robust_information_range: tuple[float, float] | None = None
        self.card = card or {}
        self.temperature = temperature
        self.distance: FeatureDistance | None = None
        self.risk_model: RiskModel | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return ln of the members' mean probability, (batch, class)."""
        return torch.logsumexp(self.member_log_probs(x), dim=1) - math.log(len(self.members))

    def member_log_probs(self, x: Tensor) -> Tensor:
        """Return every member's log probabilities, (batch, member, class)."""
        return torch.stack([member(x).log_softmax(dim=1) for member in self.members], dim=1)

    def predict(
        self,
        recordings: "Input | Iterable[Input] | ArrayLike",
        *,
        lead: str | None = None,
        rate_hz: float | None = None,
        leads: Sequence[str] | None = None,
        units: str = "mV",
    ) -> Prediction:
        """Classify recordings of any rate, length, unit or lead order; one that does not fit is an error.

        A recording that is longer than the window is classified in several windows, and gets the mean of their
        probabilities. What the quality guard finds, such as a lead that is off, or samples that must be in microvolts
        though millivolts are stated, is a `QualityWarning`.

        recordings:   a path, a `Recording`, several of either, or an array: (time,), (lead, time) or
                      (record, lead, time)
        lead:         for a model of one lead, which of a recording's leads to take
        rate_hz:      of an array, in samples per second
        leads, units: of an array; by default the model's leads, and millivolts
        """
        several = _list_inputs(recordings)
        if several is None:
            samples = np.asarray(recordings)
            if leads is None and samples.ndim > 1 and samples.shape[-2] == len(self.input.leads):
                leads = self.input.leads
            several = recordings_from_array(samples, rate_hz=rate_hz, leads=leads, units=units)
        found = (one if isinstance(one, Recording) else read(one) for one in several)
        doubts: list[str] = []
        prediction, _ = self._predict_in_windows(self._fit_and_assess(one, lead, doubts) for one in found)
        for doubt in doubts:
            warnings.warn(doubt, QualityWarning, stacklevel=2)
        return prediction

    def _fit_and_assess(self, recording: Recording, lead: str | None, doubts: list[str]) -> tuple[str, Signal]:
        """Prepare a recording; adds what the guard finds, which knows nothing about samples without a scale."""
        if self.input.scaling != "none":
            quality = assess_quality(select_leads(recording, self.input.leads, lead))
            doubts += [f"{recording.source or recording.id}: {reason}" for reason in quality.reasons]
        return recording.id, self.input.fit(recording, lead)

    def save(self, path: str | Path) -> Path:
        """Write the ensemble as a bundle to the folder `path`; `load_ensemble` reads it."""
        from ecgquorum.ensemble.bundle import save_bundle  # which needs this module

        return save_bundle(self, path)

    def predict_part(self, cohort: Cohort, part: Part) -> Prediction:
        """Classify every recording of a part of a cohort; recordings of similar length share a batch."""
        indices = cohort.part(part)
        order = cohort.by_length(indices)
        starts = range(0, len(indices), _BATCH)
        batches = (cohort.batch(indices[order[start : start + _BATCH]], self.input) for start in starts)
        outputs = _join_outputs([self.member_outputs(batch) for batch in batches], len(self.members), len(self.classes))
        probs, distances = (one[np.argsort(order)] for one in outputs)
        _check_finite(probs, lambda place: cohort.rows[indices[place]].id)
        return self.make_prediction([cohort.rows[i].id for i in indices], probs, distances)

    def predict_prepared(self, ids: Sequence[str], signals: Sequence[Signal]) -> Prediction:
        """Classify signals that `self.input.fit` has prepared."""
        return self._predict_in_windows(zip(ids, signals, strict=True))[0]

    def predict_windows(
        self, ids: Sequence[str], signals: Sequence[Signal], windowing: Windowing = WHOLE_WINDOWS
    ) -> tuple[Prediction, Prediction]:
        """Classify prepared signals: the recordings, and each window of each of them, in order.

        A recording has the mean probabilities of its windows; the id of a window is that of its recording.
        """
        return self._predict_in_windows(zip(ids, signals, strict=True), windowing)

    def _predict_in_windows(
        self, fitted: Iterable[tuple[str, Signal]], windowing: Windowing = WHOLE_WINDOWS
    ) -> tuple[Prediction, Prediction]:
        """Classify each recording in windows and average their probabilities; recordings, and windows."""
        windowing.check(self.input)
        n_window = windowing.n_window(self.input)
        ids: list[str] = []
        owners: list[int] = []

        def windows() -> Iterator[Signal]:
            for record, signal in fitted:
                for start in windowing.starts(signal.shape[1], self.input):
                    owners.append(len(ids))
                    yield signal[:, start : start + n_window]
                ids.append(record)

        parts = [self._outputs_by_length(part) for part in _split(windows(), _AHEAD)]
        probs, distances = _join_outputs(parts, len(self.members), len(self.classes))
        _check_finite(probs, lambda window: ids[owners[window]])
        means = (_mean_by_owner(values, owners, len(ids)) for values in (probs, distances))
        every = self.make_prediction([ids[owner] for owner in owners], probs, distances)
        return self.make_prediction(ids, *means), every

    def _outputs_by_length(self, signals: Sequence[Signal]) -> tuple[np.ndarray, np.ndarray]:
        """What `member_outputs` returns, in order; signals of similar length share a batch, which has less padding."""
        order = np.argsort([signal.shape[1] for signal in signals], kind="stable")
        batches = [[signals[i] for i in order[start : start + _BATCH]] for start in range(0, len(order), _BATCH)]
        outputs = [self.member_outputs(make_batch(batch, self.input.n_window)) for batch in batches]
        probs, distances = (np.concatenate(one)[np.argsort(order)] for one in zip(*outputs, strict=True))
        return probs, distances

    def make_prediction(self, ids: Sequence[str], probs: np.ndarray, distances: np.ndarray) -> Prediction:
        """Wrap what `member_outputs` returned for recordings."""
        return Prediction(
            tuple(ids),
            self.classes,
            probs,
            self.information_range,
            self.temperature,
            distances if self.distance else None,
            self.risk_model,
        )

    def member_probs(self, batch: Batch) -> np.ndarray:
        """Return (batch, member, class) in float64, computed in evaluation mode; the ensemble's mode is restored."""
        return _as_probs(self._run_members(batch, lambda member, x: member(x)))

    def member_features(self, batch: Batch) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return probabilities (batch, member, class) and the features of each member, (batch, feature)."""
        logits, features = zip(*self._run_members(batch, forward_with_features), strict=True)
        return _as_probs(logits), [one.double().cpu().numpy() for one in features]

    def member_outputs(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities (batch, member, class), and the feature distance (batch,): NaN until it is fitted."""
        if self.distance is None:
            return self.member_probs(batch), np.full(len(batch.label), np.nan)
        probs, features = self.member_features(batch)
        return probs, self.distance.measure(features)

    def _run_members(self, batch: Batch, run: Callable[[nn.Module, Tensor], Any]) -> list[Any]:
        """Call run(member, x) for each member in evaluation mode; the ensemble's mode is restored."""
        was_training = self.training
        self.eval()
        x = batch.signal.to(self.device)
        try:
            with torch.inference_mode():
                return [run(member, x) for member in self.members]
        finally:
            self.train(was_training)

    @property
    def device(self) -> torch.device:
        """Where the members' parameters are; the CPU for members without parameters."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))


def _as_probs(logits: Sequence[Tensor]) -> np.ndarray:
    """(batch, member, class) in float64, of each member's logits."""
    logs = torch.stack([one.log_softmax(dim=1) for one in logits], dim=1)
    probs: np.ndarray = logs.double().exp().cpu().numpy()
    return np.asarray(probs / probs.sum(axis=2, keepdims=True))


def _split(signals: Iterable[Signal], n_most: int) -> Iterator[list[Signal]]:
    """Lists of at most so many signals, in order."""
    remaining = iter(signals)
    while part := list(islice(remaining, n_most)):
        yield part


def _join_outputs(
    outputs: Sequence[tuple[np.ndarray, np.ndarray]], n_members: int, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """(row, member, class) and (row,) of all batches, of which there may be none."""
    probs, distances = zip((np.zeros((0, n_members, n_classes)), np.zeros(0)), *outputs, strict=True)
    return np.concatenate(probs), np.concatenate(distances)


def _check_finite(probs: np.ndarray, name_of: Callable[[int], str]) -> None:
    """Raise where a network gives no finite probability."""
    lost = np.flatnonzero(~np.isfinite(probs).all(axis=(1, 2)))
    if len(lost):
        raise FittingError(
            f"{name_of(int(lost[0]))}: the network gives no finite probability; its samples are out of range"
        )


def _mean_by_owner(values: np.ndarray, owners: Sequence[int], n_owners: int) -> np.ndarray:
    """(owner, ...): the mean of the rows that belong to each."""
    sums = np.zeros((n_owners, *values.shape[1:]))
    np.add.at(sums, list(owners), values)
    counts = np.bincount(owners, minlength=n_owners) if len(owners) else np.zeros(n_owners)
    return np.asarray(sums / np.maximum(counts, 1).reshape(-1, *[1] * (values.ndim - 1)))


def _list_inputs(recordings: object) -> "Iterable[Input] | None":
    """Return the paths and recordings that these are; None where they are samples."""
    if isinstance(recordings, str | Path | Recording):
        return [recordings]
    if hasattr(recordings, "__array__") or not isinstance(recordings, Iterable):
        return None
    if isinstance(recordings, Sequence) and recordings and not isinstance(recordings[0], str | Path | Recording):
        return None
    return recordings
