"""Measure a recording: heart rate and irregularity by our own beats; PR, QRS and QT by the `neurokit2` package."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import EcgQuorumError
from ecgquorum.preprocessing.beats import Array, find_beats
from ecgquorum.recordings.recording import Recording

_FEWEST_BEATS = 3
_RR_S = (0.2, 3.0)
_LEADS = ("V5", "V6", "I", "V4", "II")
"""In which a QRS complex is mostly upright, which the delineation needs; three of them are used."""

_N_LEADS, _LONGEST_S = 3, 60.0
_LARGEST_SPREAD_MS = 25.0  # of an interval from beat to beat; more means that the wave was not found
_PLAUSIBLE_MS = {"pr_ms": (60.0, 500.0), "qrs_ms": (40.0, 300.0), "qt_ms": (150.0, 800.0)}


@dataclass(frozen=True)
class Measurements:
    """What was measured; None where it could not be.

    heart_rate_bpm:    60 / median RR interval
    rr_irregularity:   root mean square of successive differences of RR intervals, divided by their mean; below 0.1 in
                       most sinus rhythms, above it in most atrial fibrillation
    n_beats:           beats found
    pr_ms, qrs_ms, qt_ms: median intervals over beats and leads
    qtc_bazett_ms:     QT / RR^(1/2), RR in seconds · qtc_fridericia_ms: QT / RR^(1/3)
    """

    heart_rate_bpm: float | None = None
    rr_irregularity: float | None = None
    n_beats: int | None = None
    pr_ms: float | None = None
    qrs_ms: float | None = None
    qt_ms: float | None = None
    qtc_bazett_ms: float | None = None
    qtc_fridericia_ms: float | None = None

    def __bool__(self) -> bool:
        """Whether anything was measured."""
        return any(value is not None for value in asdict(self).values())

    def line(self) -> str:
        """For people: 72 /min, RR irregularity 0.03, PR 160 ms, ..."""
        parts = [f"{self.heart_rate_bpm:.0f} /min"] if self.heart_rate_bpm is not None else []
        parts += [f"RR irregularity {self.rr_irregularity:.2f}"] if self.rr_irregularity is not None else []
        named = {"PR": self.pr_ms, "QRS": self.qrs_ms, "QT": self.qt_ms, "QTc (Bazett)": self.qtc_bazett_ms}
        named["QTc (Fridericia)"] = self.qtc_fridericia_ms
        return ", ".join([*parts, *(f"{name} {value:.0f} ms" for name, value in named.items() if value is not None)])


NOT_MEASURED = Measurements()


def require_package() -> None:
    """Raise unless intervals can be measured."""
    if find_spec("neurokit2") is None:
        raise EcgQuorumError(
            "PR, QRS and QT need the package neurokit2; install with: pip install 'ecgquorum[measure]'"
        )


def measure_recording(recording: Recording, intervals_of: Recording | None = None) -> Measurements:
    """Measure heart rate and irregularity.

    intervals_of: also measure PR, QRS and QT in the first minute of this one, which may have more leads
    """
    rate = _measure_rhythm(find_beats(recording))
    if intervals_of is None or rate.heart_rate_bpm is None:
        return rate
    require_package()
    found = _measure_intervals(intervals_of)
    qt_ms, rr_s = found.get("qt_ms"), 60 / rate.heart_rate_bpm
    corrected = {"qtc_bazett_ms": 1 / 2, "qtc_fridericia_ms": 1 / 3}
    found |= {name: None if qt_ms is None else round(qt_ms / rr_s**power, 1) for name, power in corrected.items()}
    return replace(rate, **found)


def _measure_rhythm(beats_s: Array) -> Measurements:
    intervals = np.diff(beats_s)
    plausible = (intervals >= _RR_S[0]) & (intervals <= _RR_S[1])
    if plausible.sum() < _FEWEST_BEATS - 1:
        return replace(NOT_MEASURED, n_beats=len(beats_s))
    rr = intervals[plausible]
    steps = np.diff(intervals)[plausible[1:] & plausible[:-1]]
    irregularity = float(np.sqrt(np.mean(steps**2)) / rr.mean()) if len(steps) else None
    return Measurements(
        round(60 / float(np.median(rr)), 1), None if irregularity is None else round(irregularity, 3), len(beats_s)
    )


def _measure_intervals(recording: Recording) -> dict[str, Any]:
    """Medians over the leads in which an interval could be measured."""
    names = [name for name in _LEADS if name in recording.leads][:_N_LEADS] or list(recording.leads[:1])
    n_samples = round(_LONGEST_S * recording.rate_hz)
    rows = [recording.signal[recording.leads.index(name), :n_samples] for name in names]
    by_lead = [_delineate(np.nan_to_num(row, posinf=0.0, neginf=0.0), recording.rate_hz) for row in rows]
    return {name: _summarise(name, [found[name] for found in by_lead if name in found]) for name in _PLAUSIBLE_MS}


def _summarise(name: str, values: Sequence[float]) -> float | None:
    low, high = _PLAUSIBLE_MS[name]
    kept = [value for value in values if low <= value <= high]
    return round(float(np.median(kept)), 1) if kept else None


def _delineate(row: NDArray[np.float32], rate_hz: float) -> dict[str, float]:
    """Median intervals of one lead in ms; an interval that differs much from beat to beat is left out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas and scipy, about how neurokit2 uses them
            import neurokit2  # here: optional, and slow to import

            clean = neurokit2.ecg_clean(row.astype(np.float64), sampling_rate=rate_hz)
            _, peaks = neurokit2.ecg_peaks(clean, sampling_rate=rate_hz)
            beats = peaks["ECG_R_Peaks"]
            if len(beats) < _FEWEST_BEATS + 1:
                return {}
            _, waves = neurokit2.ecg_delineate(clean, beats, sampling_rate=rate_hz, method="dwt")
    except Exception:  # neurokit2 raises whatever numpy and pandas do for a signal without waves
        return {}
    points = {name: np.array(values, dtype=float) * 1000 / rate_hz for name, values in waves.items()}
    return _take_intervals(points)


def _take_intervals(points: dict[str, Array]) -> dict[str, float]:
    """PR, QRS and QT from the wave limits of each beat, in ms.

    An onset of the QRS complex before the end of its P wave is an error of the delineation, and is not used.
    """
    onset = points["ECG_R_Onsets"].copy()
    onset[np.isfinite(points["ECG_P_Offsets"]) & ~(onset > points["ECG_P_Offsets"])] = np.nan
    each: dict[str, Any] = {
        "pr_ms": onset - points["ECG_P_Onsets"],
        "qrs_ms": points["ECG_R_Offsets"] - onset,
        "qt_ms": points["ECG_T_Offsets"] - onset,
    }
    found = {}
    for name, values in each.items():
        known = values[np.isfinite(values)]
        if len(known) >= max(_FEWEST_BEATS, len(values) // 2):
            middle = float(np.median(known))
            if float(np.median(np.abs(known - middle))) * 1.4826 <= _LARGEST_SPREAD_MS:
                found[name] = middle
    return found
