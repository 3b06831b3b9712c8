"""Detect recordings whose stated unit cannot be true, by the amplitude of their beats, and correct them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ecgquorum.recordings.recording import Recording, as_samples
from ecgquorum.recordings.units import Correction, millivolts_in

SMALLEST_MV, LARGEST_MV = 0.05, 20.0
"""Plausible peak-to-peak amplitudes of an ECG on the skin."""

_COMMON_MV = (0.2, 10.0)  # narrower than the plausible range, so that no two units can explain the same samples
_UNITS = ("V", "mV", "uV")
_WINDOW_S, _MOST_WINDOWS = 2.0, 60
_SPIKES = 0.005
_SLOPE_S = 0.015
_BEATS = 5.0


def typical_size(values: NDArray[np.floating], rate_hz: float) -> float:
    """Median peak-to-peak amplitude over windows of 2 s, without the most extreme 1 % of samples; mV.

    values: (time,), finite; of a long recording, windows spread evenly over it
    """
    return _size(_windows(values, rate_hz))


def explaining_unit(size_mv: float, stated: str) -> str | None:
    """The common unit in which samples of this size would be plausible, if it is not the stated one."""
    factor = millivolts_in(stated)
    if factor is None or SMALLEST_MV <= size_mv <= LARGEST_MV:
        return None
    sizes = {unit: size_mv / factor * (millivolts_in(unit) or 0.0) for unit in _UNITS}
    return next((unit for unit, size in sizes.items() if _COMMON_MV[0] <= size <= _COMMON_MV[1]), None)


def correct_units(recording: Recording, given: str | None = None) -> Recording:
    """Return the recording in the unit that its samples must be in, if the stated one is impossible.

    Without a given unit the recording must show beats, and exactly one common unit must give them a plausible
    amplitude: noise of an open electrode, however large or small, is left as stated.

    given: the unit that the user names; used only where the stated unit is not plausible
    """
    stated = millivolts_in(recording.unit)
    finite = ((row, np.isfinite(row)) for row in recording.signal)
    known = (row if is_known.all() else row[is_known] for row, is_known in finite)  # without a copy of a whole day
    leads = [_windows(row, recording.rate_hz) for row in known if len(row) > 1]
    sizes = [size for size in map(_size, leads) if size > 0]
    if stated is None or not sizes:
        return recording
    size = float(np.median(sizes))
    if SMALLEST_MV <= size <= LARGEST_MV:
        return recording
    unit = given or explaining_unit(size, recording.unit)
    if unit is None or (given is None and not _has_beats(leads, recording.rate_hz)):
        return recording
    factor = (millivolts_in(unit) or stated) / stated
    if factor == 1:
        return recording
    correction = Correction(recording.unit, unit, factor, size, given is not None)
    return replace(recording, signal=as_samples(recording.signal.astype(np.float64) * factor), correction=correction)


def _has_beats(leads: list[NDArray[np.float64]], rate_hz: float) -> bool:
    """Whether on most leads the steepest slopes stand out from the usual ones, as a QRS complex does.

    The 99th percentile of slopes is 3.8 times their median in Gaussian noise, less in hum, 6 times and more in ECGs.
    """
    lag = max(1, int(_SLOPE_S * rate_hz))
    slopes = [np.abs(windows[:, lag:] - windows[:, :-lag]) for windows in leads if windows.shape[1] > lag]
    if not slopes:
        return False
    shown = [steepest > _BEATS * usual for usual, steepest in (np.quantile(lead, (0.5, 0.99)) for lead in slopes)]
    return float(np.mean(shown)) > 0.5


def _size(windows: NDArray[np.float64]) -> float:
    low, high = np.quantile(windows, (_SPIKES, 1 - _SPIKES), axis=1)
    return float(np.median(high - low))


def _windows(values: NDArray[np.floating], rate_hz: float) -> NDArray[np.float64]:
    """(window, time): stretches of 2 s, evenly spread; all of it when it is shorter."""
    n_window = min(len(values), max(2, round(_WINDOW_S * rate_hz)))
    count = len(values) // n_window
    kept = np.linspace(0, count - 1, min(count, _MOST_WINDOWS)).round().astype(int)
    return np.asarray(values[: count * n_window].reshape(count, n_window)[kept], dtype=np.float64)
