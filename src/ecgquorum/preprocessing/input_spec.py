"""Convert a recording to the input of a model: leads, rate, scale, window."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import FittingError
from ecgquorum.preprocessing.lead_derivation import derive_lead
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD, normalise_lead
from ecgquorum.recordings.recording import Recording

Scaling = Literal["microvolt", "unit", "none"]
Signal = NDArray[np.float32]

_MOST_MISSING = 0.5
_PIECE = 1 << 20  # samples that are resampled at once
_SHORTEST_WINDOW_S, _SHORTEST_STRIDE_S = 2.0, 1.0
_LARGEST_MV = 1e6  # larger values overflow in a network


@dataclass(frozen=True)
class InputSpec:
    """The input that a model expects.

    leads:    in this order; `("ECG",)` means one lead, whichever it is
    scaling:  "microvolt": in microvolts; "unit": each lead divided by its largest magnitude, to -1..1; "none":
              millivolts, or whatever an array holds, as they are
    window_s: length of the input: a shorter recording is padded with zeros on both sides, a longer one is classified
              in several windows
    """

    leads: tuple[str, ...]
    rate_hz: float
    scaling: Scaling = "microvolt"
    window_s: float = 60.0

    @property
    def n_window(self) -> int:
        """Samples in the window."""
        return round(self.window_s * self.rate_hz)

    def fit(self, recording: Recording, lead: str | None = None) -> Signal:
        """Select the leads, fill gaps, resample and scale: (lead, time) float32 of the recording's own length.

        lead: for a model of one lead, which lead of the recording to use
        """
        chosen = zero_missing_leads(select_leads(recording, self.leads, lead))
        millivolts = resample(fill_gaps(chosen), recording.rate_hz, self.rate_hz)
        largest = max(float(millivolts.max()), -float(millivolts.min()))
        if not largest <= _LARGEST_MV:
            raise FittingError(
                f"{recording.source or recording.id}: expected amplitudes of at most {_LARGEST_MV:,.0f} mV, "
                f"found {largest:.3g} mV; check its gain and units"
            )
        return self.scale(millivolts)

    def scale(self, millivolts: Signal) -> Signal:
        """Scale (lead, time) millivolts as `scaling` says; an all-zero lead stays zero."""
        if self.scaling == "none":
            return millivolts
        if self.scaling == "microvolt":
            return np.asarray(millivolts * np.float32(1000))
        peak = np.abs(millivolts).max(axis=1, keepdims=True)
        return np.asarray(np.divide(millivolts, peak, out=np.zeros_like(millivolts), where=peak > 0))


def select_leads(recording: Recording, leads: tuple[str, ...], lead: str | None = None) -> Recording:
    """Return the recording with just these leads in this order; a missing lead is a `FittingError`.

    A limb lead that does not exist, or of which more than half is missing, is derived from two others if possible.

    lead: for a model of one lead, which lead to use; the only lead of a recording that does not name it is accepted for
          any standard lead
    """
    where = recording.source or recording.id
    if lead is not None:
        if len(leads) != 1:
            raise FittingError(f"{where}: the model takes {len(leads)} leads, so none can be chosen with --lead {lead}")
        name = normalise_lead(lead)
        if name not in recording.leads and (chest := normalise_lead(f"ECG {lead}")) in STANDARD_LEADS:
            name = chest  # C1 to C6 are V1 to V6 by IEC, unless the recording has a lead of that name
        may_be_it = recording.leads == (UNNAMED_LEAD,) and name in STANDARD_LEADS
        selected: tuple[str, ...] = recording.leads if may_be_it else (name,)
    elif leads == (UNNAMED_LEAD,):
        if len(recording.leads) != 1:
            raise FittingError(
                f"{where}: expected 1 lead, found {len(recording.leads)}; "
                f"choose one with --lead {recording.leads[min(1, len(recording.leads) - 1)]}"
            )
        selected = recording.leads
    else:
        selected = leads
    lost = find_missing_leads(recording)
    rows = {name: _row(recording, name, lost) for name in selected}
    missing = [name for name, row in rows.items() if row is None]
    if missing:
        raise FittingError(
            f"{where}: expected lead {', '.join(missing)}, found only {', '.join(recording.leads)}"
            + ("; choose one with --lead" if len(leads) == 1 and lead is None else "")
        )
    if selected == recording.leads and not lost:
        return recording
    signal = np.stack([row for row in rows.values() if row is not None])
    return replace(recording, signal=signal, leads=selected)


def _row(recording: Recording, lead: str, lost: tuple[str, ...]) -> Signal | None:
    measured = np.asarray(recording.signal[recording.leads.index(lead)]) if lead in recording.leads else None
    if measured is not None and lead not in lost:
        return measured
    derived = derive_lead(recording, lead, [name for name in recording.leads if name not in lost])
    return measured if derived is None else derived


def find_missing_leads(recording: Recording) -> tuple[str, ...]:
    """Leads of which more than half is missing."""
    missing = (1 - np.isfinite(row).mean() for row in recording.signal)
    return tuple(name for name, share in zip(recording.leads, missing, strict=True) if share > _MOST_MISSING)


def zero_missing_leads(recording: Recording) -> Recording:
    """Set leads of which more than half is missing to zero, unless all are; the quality guard reports them."""
    lost = find_missing_leads(recording)
    if not lost or len(lost) == len(recording.leads):
        return recording
    signal = recording.signal.copy()
    signal[[recording.leads.index(name) for name in lost]] = 0.0
    return replace(recording, signal=signal)


def fill_gaps(recording: Recording) -> Signal:
    """Interpolate missing samples linearly (zero at the ends); (lead, time).

    A lead of which more than half is missing is a `FittingError`.
    """
    signal = recording.signal
    missing = ~np.isfinite(signal)
    if not missing.any():
        return signal
    filled = signal.copy()
    time = np.arange(signal.shape[1])
    for row, name in enumerate(recording.leads):
        gaps = missing[row]
        if gaps.mean() > _MOST_MISSING:
            raise FittingError(
                f"{recording.source or recording.id}: expected samples on lead {name}, "
                f"found {gaps.mean():.0%} of them missing"
            )
        filled[row, gaps] = np.interp(time[gaps], time[~gaps], signal[row, ~gaps], left=0.0, right=0.0)
    return filled


def resample(signal: Signal, from_hz: float, to_hz: float) -> Signal:
    """Resample (lead, time) by polyphase filtering; unchanged if the rates agree."""
    if from_hz == to_hz:
        return signal
    from scipy.signal import resample_poly  # here, since most recordings need none and it takes a second to import

    ratio = Fraction(to_hz / from_hz).limit_denominator(1000)
    up, down = max(1, ratio.numerator), ratio.denominator
    if signal.shape[1] > _PIECE:
        return _resample_in_pieces(signal, up, down)
    longer = resample_poly(signal.astype(np.float64), up, down, axis=1, padtype="line")
    return np.asarray(longer, dtype=np.float32)


def _resample_in_pieces(signal: Signal, up: int, down: int) -> Signal:
    """The same for a long signal, without its samples in double precision all at once.

    Pieces begin at multiples of `down`, where samples of input and output coincide, and overlap by the filter's length.
    """
    from scipy.signal import resample_poly

    n_samples = signal.shape[1]
    n_piece = down * max(1, _PIECE // down)
    overlap = down * -(-(10 * max(up, down) // up + 2) // down)  # half the length of the filter of `resample_poly`
    result = np.empty((len(signal), -(-n_samples * up // down)), dtype=np.float32)
    for start in range(0, n_samples, n_piece):
        stop = min(start + n_piece, n_samples)
        before, after = max(0, start - overlap), min(stop + overlap, n_samples)
        found = resample_poly(signal[:, before:after].astype(np.float64), up, down, axis=1, padtype="line")
        place, offset = slice(start * up // down, -(-stop * up // down)), before * up // down
        result[:, place] = found[:, place.start - offset : place.stop - offset]
    return result


@dataclass(frozen=True)
class Windowing:
    """How a long recording is split for classification.

    window_s: length of a window; None: that of the model. A shorter one is padded to the model's, as short recordings
    stride_s: from the start of a window to that of the next; None: the fewest evenly spread windows that cover all
    """

    window_s: float | None = None
    stride_s: float | None = None

    def check(self, spec: InputSpec) -> None:
        """Raise unless windows fit the model and leave nothing out."""
        length = spec.window_s if self.window_s is None else self.window_s
        shortest = min(_SHORTEST_WINDOW_S, spec.window_s)
        if not shortest <= length <= spec.window_s:
            raise FittingError(
                f"window: expected {shortest:g} to {spec.window_s:g} s, the model's own, found {length:g} s"
            )
        if self.stride_s is not None and not _SHORTEST_STRIDE_S <= self.stride_s <= length:
            raise FittingError(
                f"stride: expected {_SHORTEST_STRIDE_S:g} to {length:g} s, the window, found {self.stride_s:g} s; "
                "a longer one would leave parts of a recording out"
            )

    def n_window(self, spec: InputSpec) -> int:
        """Samples in a window."""
        return spec.n_window if self.window_s is None else round(self.window_s * spec.rate_hz)

    def starts(self, n_samples: int, spec: InputSpec) -> list[int]:
        """First sample of each window of a prepared signal."""
        n_window = self.n_window(spec)
        if self.stride_s is None or n_samples <= n_window:
            return window_starts(n_samples, n_window)
        last = n_samples - n_window
        return [*range(0, last, round(self.stride_s * spec.rate_hz)), last]


WHOLE_WINDOWS = Windowing()


def window_starts(n_samples: int, n_window: int) -> list[int]:
    """Start of each of the fewest evenly spread windows of `n_window` samples that cover `n_samples`."""
    n_windows = -(-n_samples // n_window)
    if n_windows <= 1:
        return [0]
    return [int(start) for start in np.linspace(0, n_samples - n_window, n_windows).round()]


def pad_or_cut(signal: Signal, n_window: int) -> tuple[Signal, slice]:
    """Cut at the end or pad with zeros on both sides to `n_window` samples; also the slice of the signal in it."""
    n_samples = signal.shape[1]
    if n_samples >= n_window:
        return signal[:, :n_window], slice(0, n_window)
    start = (n_window - n_samples) // 2
    padded = np.zeros((len(signal), n_window), dtype=np.float32)
    inside = slice(start, start + n_samples)
    padded[:, inside] = signal
    return padded, inside
