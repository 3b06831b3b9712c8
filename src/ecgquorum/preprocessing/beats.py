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
_SMALLEST_MV = 1e-4  # a lead of less in this band holds rounding errors


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
    none = np.zeros(0, dtype=np.int64)
    if signal.shape[1] < rate_hz or rate_hz <= 2.2 * _BAND_HZ[1]:
        return none
    band = _filter(signal, rate_hz)
    spread = band.std(axis=1)
    usable = spread > _SMALLEST_MV
    if not usable.any():
        return none
    band = band[usable] / spread[usable, None]
    n_smooth = max(1, round(_SMOOTH_S * rate_hz))
    height = np.sqrt(np.convolve((band**2).mean(axis=0), np.full(n_smooth, 1 / n_smooth), mode="same"))
    is_top = np.zeros(len(height), dtype=bool)
    is_top[1:-1] = (height[1:-1] > height[:-2]) & (height[1:-1] >= height[2:])
    is_top &= height >= _SHARE * _usual_height(height, round(_LEVEL_S * rate_hz))
    peaks = _keep_highest(np.flatnonzero(is_top), height, round(_REFRACTORY_S * rate_hz))
    return _align(peaks, band, max(1, round(_ALIGN_S * rate_hz)))


def _filter(signal: Array, rate_hz: float) -> Array:
    """The band of the QRS complex, by a filter without phase and with soft edges."""
    low, high = _BAND_HZ
    hertz = np.fft.rfftfreq(signal.shape[1], 1 / rate_hz)
    gain = np.exp(-0.5 * ((hertz - (low + high) / 2) / ((high - low) / 2)) ** 4)
    return np.asarray(np.fft.irfft(np.fft.rfft(signal, axis=1) * gain, signal.shape[1], axis=1))


def _usual_height(height: Array, n_level: int) -> Array:
    """At each sample, the median of the largest heights of the nine stretches around it."""
    n_levels = -(-len(height) // n_level)
    padded = np.pad(height, (0, n_levels * n_level - len(height)))
    tops = np.pad(padded.reshape(n_levels, n_level).max(axis=1), 4, mode="edge")
    return np.repeat(np.median(np.lib.stride_tricks.sliding_window_view(tops, 9), axis=1), n_level)[: len(height)]


def _keep_highest(peaks: NDArray[np.int64], height: Array, n_apart: int) -> NDArray[np.int64]:
    """Of peaks that are too close for two beats, the higher one."""
    is_near, kept = np.zeros(len(height), dtype=bool), []
    for peak in peaks[np.argsort(-height[peaks], kind="stable")]:
        if not is_near[peak]:
            kept.append(peak)
            is_near[max(0, peak - n_apart + 1) : peak + n_apart] = True
    return np.array(sorted(kept), dtype=np.int64)


def _align(peaks: NDArray[np.int64], band: Array, n_around: int) -> NDArray[np.int64]:
    """Move each peak to the largest deflection near it, so that intervals between beats are exact."""
    size = np.abs(band).sum(axis=0)
    starts = np.clip(peaks - n_around, 0, len(size))
    return np.array(
        [start + int(size[start : peak + n_around + 1].argmax()) for start, peak in zip(starts, peaks, strict=True)],
        dtype=np.int64,
    )
