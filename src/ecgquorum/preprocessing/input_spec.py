"""Fitting a recording to a model's input: leads, rate, scale, window."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import FittingError
from ecgquorum.preprocessing.lead_derivation import derived
from ecgquorum.recordings.leads import UNNAMED_LEAD, normalise_lead
from ecgquorum.recordings.recording import Recording

Scaling = Literal["microvolt", "unit", "none"]
Signal = NDArray[np.float32]

_MOST_MISSING = 0.5
_LARGEST_MV = 1e6  # a thousand volts: no heart, and less than what a network can no longer compute with


@dataclass(frozen=True)
class InputSpec:
    """The input that a model takes.

    leads:    in this order; `("ECG",)` means one lead, whichever it is
    scaling:  "microvolt": microvolts as they are; "unit": each lead divided by its largest magnitude, to -1..1; "none":
              millivolts, or whatever an array holds, as they are
    window_s: of the network: a shorter recording is padded with zeros on both sides, a longer one is cut
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
        """The recording as (lead, time) float32: its leads chosen, resampled, scaled; its length is its own.

        lead: for a model of one lead, which one of the recording's named leads to take
        """
        chosen = zero_missing_leads(select_leads(recording, self.leads, lead))
        millivolts = resample(fill_gaps(chosen), recording.rate_hz, self.rate_hz)
        largest = float(np.abs(millivolts).max())
        if not largest <= _LARGEST_MV:
            raise FittingError(
                f"{recording.source or recording.id}: expected finite amplitudes of at most {_LARGEST_MV:g} mV, "
                f"found {largest:g}; look at its gain and units"
            )
        return self.scaled(millivolts)

    def scaled(self, millivolts: Signal) -> Signal:
        """Millivolts brought to the scale of the model's input; an all-zero lead stays zero."""
        if self.scaling == "none":
            return millivolts
        if self.scaling == "microvolt":
            return np.asarray(millivolts * np.float32(1000))
        peak = np.abs(millivolts).max(axis=1, keepdims=True)
        return np.asarray(np.divide(millivolts, peak, out=np.zeros_like(millivolts), where=peak > 0))


def select_leads(recording: Recording, leads: tuple[str, ...], lead: str | None = None) -> Recording:
    """The recording with just these leads in this order, or a `FittingError` that names what is missing.

    A limb lead that is not there, or of which more than half is missing, is derived from two others, where these are.
    """
    where = recording.source or recording.id
    if lead is not None:
        if len(leads) != 1:
            raise FittingError(f"{where}: the model takes {len(leads)} leads, so none can be chosen with --lead {lead}")
        unnamed = recording.leads == (UNNAMED_LEAD,)  # then there is nothing to choose from
        wanted: tuple[str, ...] = recording.leads if unnamed else (normalise_lead(lead),)
    elif leads == (UNNAMED_LEAD,):
        if len(recording.leads) != 1:
            raise FittingError(
                f"{where}: expected 1 lead, found {len(recording.leads)}; "
                f"choose one with --lead {recording.leads[min(1, len(recording.leads) - 1)]}"
            )
        wanted = recording.leads
    else:
        wanted = leads
    lost = find_missing_leads(recording)
    rows = {name: _row(recording, name, lost) for name in wanted}
    missing = [name for name, row in rows.items() if row is None]
    if missing:
        raise FittingError(
            f"{where}: expected lead {', '.join(missing)}, found only {', '.join(recording.leads)}"
            + ("; choose one with --lead" if len(leads) == 1 and lead is None else "")
        )
    if wanted == recording.leads and not lost:
        return recording
    signal = np.stack([row for row in rows.values() if row is not None])
    return replace(recording, signal=signal, leads=wanted)


def _row(recording: Recording, lead: str, lost: tuple[str, ...]) -> Signal | None:
    there = np.asarray(recording.signal[recording.leads.index(lead)]) if lead in recording.leads else None
    if there is not None and lead not in lost:
        return there
    found = derived(recording, lead, [name for name in recording.leads if name not in lost])
    return there if found is None else found


def find_missing_leads(recording: Recording) -> tuple[str, ...]:
    """Leads of which more than half is missing."""
    missing = (1 - np.isfinite(row).mean() for row in recording.signal)
    return tuple(name for name, share in zip(recording.leads, missing, strict=True) if share > _MOST_MISSING)


def zero_missing_leads(recording: Recording) -> Recording:
    """Leads of which more than half is missing as zero, where another lead is there; the input guard tells of them."""
    lost = find_missing_leads(recording)
    if not lost or len(lost) == len(recording.leads):
        return recording
    signal = recording.signal.copy()
    signal[[recording.leads.index(name) for name in lost]] = 0.0
    return replace(recording, signal=signal)


def fill_gaps(recording: Recording) -> Signal:
    """The signal with missing samples bridged by straight lines (zero at the ends).

    Refuses a lead of which more than half is missing.
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
    """(lead, time) at another rate, by polyphase filtering; unchanged when the rates agree."""
    if from_hz == to_hz:
        return signal
    from scipy.signal import resample_poly  # half a second to import, and not always needed

    ratio = Fraction(to_hz / from_hz).limit_denominator(1000)
    up, down = max(1, ratio.numerator), ratio.denominator
    longer = resample_poly(signal.astype(np.float64), up, down, axis=1, padtype="line")
    return np.asarray(longer, dtype=np.float32)


def window_starts(n_samples: int, n_window: int) -> list[int]:
    """Where as few windows of `n_window` samples begin as cover `n_samples`, evenly spread."""
    n_stretches = -(-n_samples // n_window)
    if n_stretches <= 1:
        return [0]
    return [int(start) for start in np.linspace(0, n_samples - n_window, n_stretches).round()]


def split_windows(signal: Signal, n_window: int) -> list[Signal]:
    """The stretches of the signal at `window_starts`; one that is shorter than a window as it is."""
    return [signal[:, start : start + n_window] for start in window_starts(signal.shape[1], n_window)]


def pad_or_cut(signal: Signal, n_window: int) -> tuple[Signal, slice]:
    """The signal cut at its end, or padded with zeros on both sides, to `n_window` samples, and where it lies there."""
    n_samples = signal.shape[1]
    if n_samples >= n_window:
        return signal[:, :n_window], slice(0, n_window)
    start = (n_window - n_samples) // 2
    padded = np.zeros((len(signal), n_window), dtype=np.float32)
    place = slice(start, start + n_samples)
    padded[:, place] = signal
    return padded, place
