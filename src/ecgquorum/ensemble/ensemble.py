"""Several members that answer together."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ecgquorum.cohorts import Batch, Cohort, Part, make_batch
from ecgquorum.ensemble.prediction import Prediction
from ecgquorum.errors import FittingError
from ecgquorum.members import Member
from ecgquorum.preprocessing import InputSpec
from ecgquorum.preprocessing.input_spec import Signal, split_windows
from ecgquorum.recordings import Recording

_BATCH = 32


class Ensemble(nn.Module):
    """K members and what they need to know about their input.

    forward(x) is a classifier like any other: (batch, lead, time) -> ln mean_k softmax(member_k(x)), (batch, class).

    information_range: (I_min, I_max) of the training set; (0, ln min(K, C)) until it is measured
    temperature:       of calibrated probabilities; 1 until it is fitted
    card:              what the bundle's card says beyond that; empty for an ensemble that was never stored
    """

    def __init__(
        self,
        members: Sequence[Member],
        classes: Sequence[str],
        spec: InputSpec,
        information_range: tuple[float, float] | None = None,
        card: dict[str, Any] | None = None,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.classes = tuple(classes)
        self.spec = spec
        self.information_range = information_range or (0.0, math.log(max(2, min(len(members), len(classes)))))
        self.card = card or {}
        self.temperature = temperature

    def forward(self, x: Tensor) -> Tensor:
        """ln of the members' mean probability, (batch, class)."""
        return torch.logsumexp(self.member_log_probs(x), dim=1) - math.log(len(self.members))

    def member_log_probs(self, x: Tensor) -> Tensor:
        """(batch, member, class)."""
        return torch.stack([member(x).log_softmax(dim=1) for member in self.members], dim=1)

    def predict(self, recordings: Recording | Iterable[Recording], lead: str | None = None) -> Prediction:
        """Classify recordings of any rate, length, unit or lead order; one that cannot be fitted is refused.

        A recording that is longer than the window is classified in several, and gets the mean of their probabilities.

        lead: for a model of one lead, which of a recording's leads to take
        """
        if isinstance(recordings, Recording):
            recordings = [recordings]
        fitted = ((recording.id, self.spec.fit(recording, lead)) for recording in recordings)
        return self._predicted_in_windows(fitted)

    def predict_part(self, cohort: Cohort, part: Part) -> Prediction:
        """Classify every recording of a part of a cohort; those of like length together, since padding costs time."""
        indices = cohort.part(part)
        order = cohort.by_length(indices)
        starts = range(0, len(indices), _BATCH)
        batches = (cohort.batch(indices[order[start : start + _BATCH]], self.spec) for start in starts)
        sorted_probs = self._probs(batches, lambda place: cohort.rows[indices[order][place]].id)
        probs = np.empty_like(sorted_probs)
        probs[order] = sorted_probs
        return self._prediction([cohort.rows[i].id for i in indices], probs)

    def predict_prepared(self, ids: Sequence[str], signals: Sequence[Signal]) -> Prediction:
        """Classify signals that `self.spec.fit` has already fitted."""
        return self._predicted_in_windows(zip(ids, signals, strict=True))

    def _predicted_in_windows(self, fitted: Iterable[tuple[str, Signal]]) -> Prediction:
        """Each recording's windows, in batches; their probabilities averaged."""
        ids: list[str] = []
        owners: list[int] = []

        def batches() -> Iterator[Batch]:
            waiting: list[Signal] = []
            for record, signal in fitted:
                for window in split_windows(signal, self.spec.n_window):
                    owners.append(len(ids))
                    waiting.append(window)
                    if len(waiting) == _BATCH:
                        yield make_batch(waiting, self.spec.n_window)
                        waiting.clear()
                ids.append(record)
            if waiting:
                yield make_batch(waiting, self.spec.n_window)

        probs = self._probs(batches(), lambda window: ids[owners[window]])
        sums = np.zeros((len(ids), *probs.shape[1:]))
        np.add.at(sums, owners, probs)
        counts = np.bincount(owners, minlength=len(ids)) if owners else np.zeros(0)
        return self._prediction(ids, sums / np.maximum(counts, 1)[:, None, None])

    def _probs(self, batches: Iterator[Batch], name_of: Callable[[int], str]) -> np.ndarray:
        """(row, member, class) of all batches; refuses what a network could not compute with."""
        empty = np.zeros((0, len(self.members), len(self.classes)))
        probs = np.concatenate([empty, *(self.member_probs(batch) for batch in batches)])
        lost = np.flatnonzero(~np.isfinite(probs).all(axis=(1, 2)))
        if len(lost):
            raise FittingError(
                f"{name_of(int(lost[0]))}: expected finite probabilities, found none; its samples are out of range"
            )
        return probs

    def _prediction(self, ids: Sequence[str], probs: np.ndarray) -> Prediction:
        return Prediction(tuple(ids), self.classes, probs, self.information_range, self.temperature)

    def member_probs(self, batch: Batch) -> np.ndarray:
        """(batch, member, class) float64, in evaluation mode; the mode the ensemble was in is put back."""
        was_training = self.training
        self.eval()
        device = next(self.parameters()).device
        with torch.inference_mode():
            answer: np.ndarray = self.member_log_probs(batch.signal.to(device)).double().exp().cpu().numpy()
        self.train(was_training)
        return np.asarray(answer / answer.sum(axis=2, keepdims=True))
