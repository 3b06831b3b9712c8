"""Attribution: which samples of a recording each member's class rests on."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import convolve1d
from torch import Tensor

from ecgquorum.cohorts import make_batch
from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.ensemble.prediction import Prediction
from ecgquorum.errors import FittingError
from ecgquorum.members import freeze
from ecgquorum.preprocessing.input_spec import Signal, pad_or_cut, select_leads, window_starts
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recordings import Recording

T = TypeVar("T")
Array = NDArray[np.float64]
Method = Literal["gradient", "occlusion"]

STRETCH_S = 0.2
"""Resolution of both maps: the length of an occlusion, and of the smoothing of gradients."""

METHODS: dict[Method, str] = {
    "gradient": f"|gradient of ln P(own class) x deviation from the lead's median|, smoothed over {STRETCH_S:g} s",
    "occlusion": f"fall of P(own class) when {STRETCH_S:g} s of one lead are bridged by a straight line",
}
"""The methods, and what each shows."""

_STEP_S = STRETCH_S / 2
_BATCH = 32


@dataclass(frozen=True, eq=False)
class Attribution:
    """Which samples each member's class rests on.

    values:     (member, lead, time) at the recording's own samples, from 0 to 1 at the member's largest; NaN outside of
                the requested span
    leads:      the leads that the model was given, some of them derived or chosen
    classes:    (member,) each member's own class, which its map explains
    strongest:  (member,) what 1 stands for: a drop of probability (occlusion), nats per sample (gradient)
    prediction: of the ensemble, for the whole recording
    """

    method: Method
    values: Array
    leads: tuple[str, ...]
    classes: tuple[str, ...]
    strongest: Array
    prediction: Prediction

    @property
    def description(self) -> str:
        """What the values are, in words."""
        return METHODS[self.method]


def attribute(
    ensemble: Ensemble,
    recording: Recording,
    method: Method = "gradient",
    lead: str | None = None,
    *,
    span_s: tuple[float, float] | None = None,
    progress: Progress = NO_PROGRESS,
) -> Attribution:
    """Compute which samples each member's own class rests on, for a recording of any rate, length, unit or lead order.

    gradient:  |d ln P_k(c_k) / dx * (x - median x)|: to first order, the effect of flattening a sample
    occlusion: the drop of P_k(c_k) when a segment of one lead is replaced by a straight line

    lead:   for a model of one lead, which of the recording's leads to take
    span_s: start and end of the samples to explain, in seconds; the prediction is of the whole recording
    """
    signal = ensemble.input.fit(recording, lead)
    leads = select_leads(recording, ensemble.input.leads, lead).leads
    prediction = ensemble.predict_prepared([recording.id], [signal])
    own = prediction.member_probs[0].argmax(axis=1)
    rate_hz, n_samples = ensemble.input.rate_hz, signal.shape[1]
    first_s, last_s = span_s or (0.0, recording.seconds)
    asked = slice(max(0, int(first_s * rate_hz)), min(n_samples, int(np.ceil(last_s * rate_hz)) + 1))
    if asked.start >= asked.stop:
        raise FittingError(
            f"{recording.id}: expected a span inside its {recording.seconds:g} s, found {first_s:g} to {last_s:g} s"
        )
    if method == "gradient":
        deviation = signal - np.median(signal, axis=1, keepdims=True)
        size = np.abs(class_gradients(ensemble, signal, own, asked) * deviation)
        raw = convolve1d(size, _smoothing_kernel(rate_hz), axis=2, mode="constant")
    else:
        raw = _occlusion_drops(ensemble, signal, own, asked, progress)
    values = _interpolate(recording, raw, rate_hz)
    time = np.arange(recording.n_samples) / recording.rate_hz
    values[:, :, (time < first_s) | (time > last_s)] = np.nan
    strongest = np.nanmax(values, axis=(1, 2))
    values /= np.where(strongest > 0, strongest, 1.0)[:, None, None]
    classes = tuple(ensemble.classes[c] for c in own)
    return Attribution(method, values, leads, classes, strongest, prediction)


def class_gradients(
    ensemble: Ensemble, signal: Signal, own: NDArray[np.int64], asked: slice = slice(None)
) -> NDArray[np.float64]:
    """Return d ln P_k(c_k) / dx, (member, lead, time), with P the mean over the windows that cover a prepared signal.

    own:   (member,) the class c_k of each member, as its index
    asked: the samples to explain; windows without any of them are left out
    """
    gradients = np.zeros((len(ensemble.members), *signal.shape))
    total = np.zeros(len(ensemble.members))
    device = next(ensemble.parameters()).device
    n_window = ensemble.input.n_window
    inside = pad_or_cut(signal, n_window)[1]
    with freeze(ensemble):
        for starts in _split_batches(window_starts(signal.shape[1], n_window)):
            windows = [signal[:, start : start + n_window] for start in starts]
            x = make_batch(windows, n_window).signal.to(device).requires_grad_()
            matters = any(_overlap(start, n_window, asked, signal.shape[1]) for start in starts)
            for k, member in enumerate(ensemble.members):
                probability = _probabilities(member(x))[:, own[k]].sum()
                total[k] += float(probability.detach())
                if matters:
                    (gradient,) = torch.autograd.grad(probability, x)
                    for start, row in zip(starts, gradient[..., inside].double().cpu().numpy(), strict=True):
                        gradients[k, :, start : start + n_window] += row
    return gradients / total[:, None, None]


def _split_batches(whole: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(whole), _BATCH):
        yield whole[start : start + _BATCH]


def _probabilities(logits: Tensor) -> Tensor:
    """In double precision, where a member that is very sure still has a gradient."""
    return logits.double().softmax(dim=1)


def _overlap(start: int, n_window: int, asked: slice, n_samples: int) -> bool:
    first, last, _ = asked.indices(n_samples)
    return start < last and first < start + n_window


def _smoothing_kernel(rate_hz: float) -> Array:
    """Return weights of a smooth mean over `STRETCH_S`."""
    half = round(STRETCH_S / 2 * rate_hz)
    weights = np.hanning(2 * half + 3)[1:-1]
    return np.asarray(weights / weights.sum())


def _occlusion_drops(
    ensemble: Ensemble,
    signal: Signal,
    own: NDArray[np.int64],
    asked: slice,
    progress: Progress,
) -> Array:
    """Return the mean drop over the segments that a sample lies in, (member, lead, time); a rise counts as 0."""
    n_leads, n_samples = signal.shape
    stretches = [
        s for s in _stretches(n_samples, ensemble.input.rate_hz) if s.start < asked.stop and asked.start < s.stop
    ]
    starts, n_window = window_starts(n_samples, ensemble.input.n_window), ensemble.input.n_window
    falls = np.zeros((len(own), n_leads, len(stretches)))
    jobs = [
        (start, lead, number)
        for start in starts
        for lead, number in product(range(n_leads), range(len(stretches)))
        if stretches[number].start < start + n_window and start < stretches[number].stop
    ]

    def own_probs(windows: list[Signal]) -> Array:
        probs = ensemble.member_probs(make_batch(windows, n_window))
        return np.asarray(probs[:, np.arange(len(own)), own])

    untouched = {start: own_probs([signal[:, start : start + n_window]])[0] for start in {job[0] for job in jobs}}
    done = 0
    for group in _split_batches(jobs):
        left = own_probs([_bridge(signal, lead, stretches[i], start, n_window) for start, lead, i in group])
        for (start, lead, i), probs in zip(group, left, strict=True):
            falls[:, lead, i] += (untouched[start] - probs) / len(starts)
        done += len(group)
        progress.update("occlusion", done, len(jobs))
    summed, counts = np.zeros((len(own), n_leads, n_samples)), np.zeros(n_samples)
    for i, stretch in enumerate(stretches):
        summed[:, :, stretch] += falls[:, :, i, None]
        counts[stretch] += 1
    return np.maximum(0.0, summed / np.maximum(counts, 1))


def _stretches(n_samples: int, rate_hz: float) -> Iterator[slice]:
    """Yield segments of `STRETCH_S` that overlap by half, so that every sample lies in two."""
    step = max(1, round(_STEP_S * rate_hz))
    for start in range(-step, n_samples, step):
        yield slice(max(0, start), min(n_samples, start + 2 * step))


def _bridge(signal: Signal, lead: int, stretch: slice, start: int, n_window: int) -> Signal:
    """Return the window of the signal with the segment of one lead replaced by a line between its neighbours."""
    row = signal[lead]
    window = signal[:, start : start + n_window].copy()
    first, last = max(stretch.start, start), min(stretch.stop, start + window.shape[1])
    ends = [at for at in (stretch.start - 1, stretch.stop) if 0 <= at < len(row)]
    line = np.interp(np.arange(first, last), ends, row[ends]) if ends else np.median(row)
    window[lead, first - start : last - start] = line
    return window


def _interpolate(recording: Recording, values: Array, rate_hz: float) -> Array:
    """Interpolate (member, lead, time) at the model's rate to the recording's own samples."""
    n_samples = values.shape[2]
    place = np.arange(recording.n_samples) * (rate_hz / recording.rate_hz)
    below = np.clip(place.astype(int), 0, max(0, n_samples - 2))
    above = np.minimum(below + 1, n_samples - 1)
    share = np.clip(place - below, 0.0, 1.0)
    return np.asarray(values[..., below] * (1 - share) + values[..., above] * share)
