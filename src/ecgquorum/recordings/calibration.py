"""Remove a calibration pulse that a device has recorded with the leads."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ecgquorum.recordings.recording import Recording

_PULSE_MV, _TOLERANCE_MV = 1.0, 0.05
_SHORTEST_S = 0.05
_ALIKE_MV = 1e-3
_FEWEST_LEADS = 3


def remove_calibration(recording: Recording) -> Recording:
    """Return the recording without its 1 mV calibration pulse, if it has one; a note says what was removed.

    In the pulse all leads have the same constant value, 1 mV for 50 ms or more, which no heart produces: with equal I
    and II, III is zero. The flat stretch around it, on which the leads also have one value, belongs to it. At an end of
    the recording it is cut off, elsewhere its samples are missing (NaN).
    """
    signal, rate_hz = recording.signal, recording.rate_hz
    if len(signal) < _FEWEST_LEADS:
        return recording
    pulse = (np.abs(signal - _PULSE_MV) <= _TOLERANCE_MV).all(axis=0)
    if not pulse.any():
        return recording
    with np.errstate(invalid="ignore"):
        differ = ~(np.ptp(signal, axis=0) <= _ALIKE_MV)
    runs = [(start, stop) for start, stop in _runs(pulse & ~differ) if stop - start >= max(2, _SHORTEST_S * rate_hz)]
    spans = sorted({_extend(start, np.flatnonzero(differ), recording.n_samples) for start, _ in runs})
    if not spans:
        return recording
    kept = signal.copy()
    for start, stop in spans:
        kept[:, start:stop] = np.nan
    first = spans[0][1] if spans[0][0] == 0 else 0
    last = spans[-1][0] if spans[-1][1] == recording.n_samples else recording.n_samples
    if first >= last:
        return recording
    seconds = ", ".join(f"{start / rate_hz:.2f} to {stop / rate_hz:.2f} s" for start, stop in spans)
    return replace(
        recording,
        signal=kept[:, first:last],
        notes=(*recording.notes, f"1 mV calibration pulse removed ({seconds})"),
    )


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(start, stop) of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _extend(index: int, borders: NDArray[np.intp], n_samples: int) -> tuple[int, int]:
    """(start, stop) of the stretch around `index` between two borders."""
    place = int(np.searchsorted(borders, index))
    return int(borders[place - 1]) + 1 if place else 0, int(borders[place]) if place < len(borders) else n_samples
