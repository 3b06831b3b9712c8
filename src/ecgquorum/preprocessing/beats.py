"""Find heart beats: peaks of the slope of the QRS complex, over all leads of a recording."""

import numpy as np
from numpy.typing import NDArray

from ecgquorum.recordings.recording import Recording

Array = NDArray[np.float64]

_BAND_HZ = (5.0, 18.0)
_SMOOTH_S = 0.08
_REFRACTORY_S = 0.24
_PIECE_S, _OVERLAP_S = 300.0, 4.0
_LEVEL_S = 2.0  # each stretch of this length has a beat in it, at 30 beats a minute or more
_SHARE = 0.35  # of the usual height of beats
_ALIGN_S = 0.06


def find_beats(recording: Recording) -> Array:
    """Times of the heart beats, in seconds; a missing sample counts as zero.

    The band of the QRS complex, squared and smoothed, summed over leads of equal weight; a beat is a peak of at least
    35 % of the usual height of the peaks around it. Long recordings are searched in pieces.
    """
    rate_hz, n_samples = recording.rate_hz, recording.n_samples
    n_piece, n_overlap = round(_PIECE_S * rate_hz), round(_OVERLAP_S * rate_hz)
    found = []
    for start in range(0, n_samples, n_piece):
        first = max(0, start - n_overlap)
        piece = np.nan_to_num(recording.signal[:, first : start + n_piece + n_overlap], posinf=0.0, neginf=0.0)
        peaks = first + _peaks(piece.astype(np.float64), rate_hz)
        found.append(peaks[(peaks >= start) & (peaks < start + n_piece)])
    beats = np.concatenate(found)
    if len(beats) > 1:  # one that two pieces have placed a few samples apart
        beats = beats[np.concatenate([[True], np.diff(beats) >= _REFRACTORY_S * rate_hz])]
    return np.asarray(beats / rate_hz)


def _peaks(signal: Array, rate_hz: float) -> NDArray[np.int64]:
    """Samples of the beats in (lead, time)."""
    from scipy.ndimage import maximum_filter1d, percentile_filter, uniform_filter1d
    from scipy.signal import butter, find_peaks, sosfiltfilt

    none = np.zeros(0, dtype=np.int64)
    if signal.shape[1] < rate_hz or rate_hz <= 2.2 * _BAND_HZ[1]:
        return none
    band = sosfiltfilt(butter(2, _BAND_HZ, "bandpass", fs=rate_hz, output="sos"), signal, axis=1)
    spread = band.std(axis=1, keepdims=True)
    usable = spread[:, 0] > 0
    if not usable.any():
        return none
    energy = ((band[usable] / spread[usable]) ** 2).mean(axis=0)
    height = np.sqrt(uniform_filter1d(energy, max(1, round(_SMOOTH_S * rate_hz))))
    n_level = max(1, round(_LEVEL_S * rate_hz))
    tops = maximum_filter1d(height, n_level)[:: max(1, n_level // 2)]
    usual = np.repeat(percentile_filter(tops, 50, size=9), max(1, n_level // 2))[: len(height)]
    usual = np.pad(usual, (0, len(height) - len(usual)), mode="edge")
    peaks, _ = find_peaks(height, distance=max(1, round(_REFRACTORY_S * rate_hz)))
    peaks = peaks[height[peaks] >= _SHARE * usual[peaks]]
    return _align(peaks, band[usable] / spread[usable], max(1, round(_ALIGN_S * rate_hz)))


def _align(peaks: NDArray[np.int64], band: Array, n_around: int) -> NDArray[np.int64]:
    """Move each peak to the largest deflection near it, so that intervals between beats are exact."""
    size = np.abs(band).sum(axis=0)
    starts = np.clip(peaks - n_around, 0, len(size))
    return np.array(
        [start + int(size[start : peak + n_around + 1].argmax()) for start, peak in zip(starts, peaks, strict=True)],
        dtype=np.int64,
    )
