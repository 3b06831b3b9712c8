"""What decided: where in a recording each member looked."""

from collections.abc import Callable, Iterator
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
from ecgquorum.recordings import Recording

T = TypeVar("T")
Array = NDArray[np.float64]
How = Literal["gradient", "occlusion"]

STRETCH_S = 0.2
"""How fine both maps are: what is taken away at a time, and what a gradient is smoothed over."""

HOWS: dict[How, str] = {
    "gradient": f"|gradient of ln P(own class) x deviation from the lead's median|, smoothed over {STRETCH_S:g} s",
    "occlusion": f"fall of P(own class) when {STRETCH_S:g} s of one lead are bridged by a straight line",
}
"""The maps there are, and what each shows."""

_STEP_S = STRETCH_S / 2
_BATCH = 32


@dataclass(frozen=True, eq=False)
class Attribution:
    """Where each member looked when it chose the class that it chose.

    values:     (member, lead, time) at the recording's own samples, 0 to 1, 1 at the member's largest; NaN where nobody
                asked
    leads:      the leads that the model was given, some of them derived or chosen
    classes:    (member,) each member's own class, which its map is about
    strongest:  (member,) what 1 stands for: a fall of probability (occlusion), nats a sample (gradient)
    prediction: the ensemble's answer to the whole recording
    """

    how: How
    values: Array
    leads: tuple[str, ...]
    classes: tuple[str, ...]
    strongest: Array
    prediction: Prediction

    @property
    def made(self) -> str:
        """What the values are, in words."""
        return HOWS[self.how]


def attribute(
    ensemble: Ensemble,
    recording: Recording,
    how: How = "gradient",
    lead: str | None = None,
    *,
    span_s: tuple[float, float] | None = None,
    told: Callable[[int, int], None] | None = None,
) -> Attribution:
    """Map what each member's own class rests on, for a recording of any rate, length, unit or lead order.

    gradient:  |d ln P_k(c_k) / dx · (x - median x)|: in first order, what flattening a sample would change
    occlusion: P_k(c_k) less what is left of it when a stretch of one lead is bridged by a straight line

    lead:   for a model of one lead, which of the recording's leads to take
    span_s: from when to when to look, in seconds; the answer is about the whole recording all the same
    told:   how much is behind us, and of how much
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
            f"{recording.id}: expected a stretch inside its {recording.seconds:g} s, found {first_s:g} to {last_s:g} s"
        )
    if how == "gradient":
        deviation = signal - np.median(signal, axis=1, keepdims=True)
        size = np.abs(class_gradients(ensemble, signal, own, asked) * deviation)
        raw = convolve1d(size, _bell(rate_hz), axis=2, mode="constant")
    else:
        raw = _falls(ensemble, signal, own, asked, told)
    values = _at_samples_of(recording, raw, rate_hz)
    time = np.arange(recording.n_samples) / recording.rate_hz
    values[:, :, (time < first_s) | (time > last_s)] = np.nan
    strongest = np.nanmax(values, axis=(1, 2))
    values /= np.where(strongest > 0, strongest, 1.0)[:, None, None]
    classes = tuple(ensemble.classes[c] for c in own)
    return Attribution(how, values, leads, classes, strongest, prediction)


def class_gradients(
    ensemble: Ensemble, signal: Signal, own: NDArray[np.int64], asked: slice = slice(None)
) -> NDArray[np.float64]:
    """d ln P_k(c_k) / dx, (member, lead, time), where P is the mean over the windows that cover a fitted signal.

    own:   (member,) the class c_k, as its index, that each member is asked about
    asked: which samples matter; windows that hold none of them are left out
    """
    gradients = np.zeros((len(ensemble.members), *signal.shape))
    total = np.zeros(len(ensemble.members))
    device = next(ensemble.parameters()).device
    n_window = ensemble.input.n_window
    inside = pad_or_cut(signal, n_window)[1]
    with freeze(ensemble):
        for starts in _in_batches(window_starts(signal.shape[1], n_window)):
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


def _in_batches(whole: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(whole), _BATCH):
        yield whole[start : start + _BATCH]


def _probabilities(logits: Tensor) -> Tensor:
    """In double precision, where a member that is very sure still has a gradient."""
    return logits.double().softmax(dim=1)


def _overlap(start: int, n_window: int, asked: slice, n_samples: int) -> bool:
    first, last, _ = asked.indices(n_samples)
    return start < last and first < start + n_window


def _bell(rate_hz: float) -> Array:
    """Weights of a smooth mean over `STRETCH_S`."""
    half = round(STRETCH_S / 2 * rate_hz)
    weights = np.hanning(2 * half + 3)[1:-1]
    return np.asarray(weights / weights.sum())


def _falls(
    ensemble: Ensemble,
    signal: Signal,
    own: NDArray[np.int64],
    asked: slice,
    told: Callable[[int, int], None] | None,
) -> Array:
    """(member, lead, time): the mean fall over the stretches that a sample lies in; a rise counts as none."""
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

    def asked_about(windows: list[Signal]) -> Array:
        probs = ensemble.member_probs(make_batch(windows, n_window))
        return np.asarray(probs[:, np.arange(len(own)), own])

    untouched = {start: asked_about([signal[:, start : start + n_window]])[0] for start in {job[0] for job in jobs}}
    done = 0
    for group in _in_batches(jobs):
        left = asked_about([_bridged(signal, lead, stretches[i], start, n_window) for start, lead, i in group])
        for (start, lead, i), probs in zip(group, left, strict=True):
            falls[:, lead, i] += (untouched[start] - probs) / len(starts)
        done += len(group)
        if told:
            told(done, len(jobs))
    summed, counts = np.zeros((len(own), n_leads, n_samples)), np.zeros(n_samples)
    for i, stretch in enumerate(stretches):
        summed[:, :, stretch] += falls[:, :, i, None]
        counts[stretch] += 1
    return np.maximum(0.0, summed / np.maximum(counts, 1))


def _stretches(n_samples: int, rate_hz: float) -> Iterator[slice]:
    """Stretches of `STRETCH_S` that overlap by half, so that every sample lies in two."""
    step = max(1, round(_STEP_S * rate_hz))
    for start in range(-step, n_samples, step):
        yield slice(max(0, start), min(n_samples, start + 2 * step))


def _bridged(signal: Signal, lead: int, stretch: slice, start: int, n_window: int) -> Signal:
    """The window of the signal with the stretch of one lead replaced by a line between its neighbours."""
    row = signal[lead]
    window = signal[:, start : start + n_window].copy()
    first, last = max(stretch.start, start), min(stretch.stop, start + window.shape[1])
    ends = [at for at in (stretch.start - 1, stretch.stop) if 0 <= at < len(row)]
    line = np.interp(np.arange(first, last), ends, row[ends]) if ends else np.median(row)
    window[lead, first - start : last - start] = line
    return window


def _at_samples_of(recording: Recording, values: Array, rate_hz: float) -> Array:
    """(member, lead, time) at the model's rate, read off at the recording's own samples."""
    n_samples = values.shape[2]
    place = np.arange(recording.n_samples) * (rate_hz / recording.rate_hz)
    below = np.clip(place.astype(int), 0, max(0, n_samples - 2))
    above = np.minimum(below + 1, n_samples - 1)
    share = np.clip(place - below, 0.0, 1.0)
    return np.asarray(values[..., below] * (1 - share) + values[..., above] * share)
