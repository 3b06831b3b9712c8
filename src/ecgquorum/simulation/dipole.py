"""The heart as a moving dipole: waves in three dimensions, and their projections on twelve leads.

Axes are Frank's: x to the left, y to the feet, z to the back. A wave is a (super-)Gaussian bump of the dipole,
    d(t) = v exp(-|(t - t0) / s|^p / 2),
and the leads are its projections by the matrix of Dower, Machado & Osborne, "On deriving the electrocardiogram
from vectorcardiographic leads", Clin. Cardiol. 3:87-95, 1980.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD

Array = NDArray[np.float64]

_DOWER = {
    "I": (0.632, -0.235, 0.059),
    "II": (0.235, 1.066, -0.132),
    "V1": (-0.515, 0.157, -0.917),
    "V2": (0.044, 0.164, -1.387),
    "V3": (0.882, 0.098, -1.277),
    "V4": (1.213, 0.127, -0.601),
    "V5": (1.125, 0.127, -0.086),
    "V6": (0.831, 0.076, 0.230),
}


def lead_field(leads: tuple[str, ...]) -> Array:
    """(lead, 3): projection of a dipole on each lead; the single unnamed lead is lead I, as on a hand-held device."""
    one, two = np.array(_DOWER["I"]), np.array(_DOWER["II"])
    rows = {name: np.array(row) for name, row in _DOWER.items()}
    rows |= {"III": two - one, "aVR": -(one + two) / 2, "aVL": one - two / 2, "aVF": two - one / 2}
    rows[UNNAMED_LEAD] = one
    unknown = [name for name in leads if name not in rows]
    if unknown:
        raise RecordingError(f"expected leads of {', '.join(STANDARD_LEADS)}, found {', '.join(unknown)}")
    return np.stack([rows[name] for name in leads])


@dataclass(frozen=True)
class Wave:
    """A bump of the dipole: centre and width in seconds from the R peak, direction and size in millivolts.

    With `follows_rate`, the centre moves with the square root of the RR interval, as the T wave does.
    """

    centre_s: float
    width_s: float
    vector: tuple[float, float, float]
    power: float = 2.0
    follows_rate: bool = False


@dataclass(frozen=True)
class Beat:
    """The shape of one beat: its atrial and its ventricular waves."""

    atrial: tuple[Wave, ...]
    ventricular: tuple[Wave, ...]

    def with_waves(self, *waves: Wave) -> "Beat":
        """The same beat with further ventricular waves."""
        return replace(self, ventricular=(*self.ventricular, *waves))


QRS_ONSET_S = -0.043
"""Where a narrow QRS complex leaves the baseline, from its R peak."""

P_VECTOR = (0.14, 0.12, -0.02)
"""Normal atrial depolarisation, in millivolts."""

_P_WIDTH_S = 0.020
_EDGE = 2.4  # a Gaussian has fallen to 5 % this many widths from its centre

_SEPTAL_Q = Wave(-0.026, 0.0075, (-0.12, 0.02, -0.25))
_MAIN_R = Wave(0.0, 0.011, (1.2, 0.8, 0.45))
_BASAL_S = Wave(0.027, 0.0095, (-0.15, -0.15, 0.45))
_T = Wave(0.30, 0.048, (0.30, 0.22, -0.15), follows_rate=True)


def p_wave(pr_s: float, vector: tuple[float, float, float] = P_VECTOR) -> Wave:
    """A P wave that begins `pr_s` before the QRS complex."""
    return Wave(QRS_ONSET_S - pr_s + _EDGE * _P_WIDTH_S, _P_WIDTH_S, vector)


def narrow_beat(p: Wave | None) -> Beat:
    """Normal conduction: a small septal vector to the right and front, then left and down, then back."""
    return Beat((p,) if p else (), (_SEPTAL_Q, _MAIN_R, _BASAL_S, _T))


def left_bundle_beat(p: Wave | None) -> Beat:
    """LBBB: no septal vector, a broad notched QRS to the left and back, and a T wave against it."""
    waves = (
        Wave(-0.012, 0.020, (0.65, 0.25, 0.60)),
        Wave(0.044, 0.023, (0.85, 0.25, 0.75)),
        replace(_T, centre_s=0.33, vector=(-0.35, -0.10, -0.30)),
    )
    return Beat((p,) if p else (), waves)


def right_bundle_beat(p: Wave | None) -> Beat:
    """RBBB: a normal beginning, then a slow vector to the right and front: rsR' in V1, broad S in I and V6."""
    waves = (
        _SEPTAL_Q,
        replace(_MAIN_R, vector=(1.05, 0.7, 0.35)),
        Wave(0.060, 0.020, (-0.60, -0.05, -0.60)),
        replace(_T, centre_s=0.32, vector=(0.35, 0.20, 0.15)),
    )
    return Beat((p,) if p else (), waves)


def ventricular_beat(direction: Array) -> Beat:
    """A premature ventricular beat: no P wave, broad and tall along `direction`, its T wave against it."""
    x, y, z = (float(v) for v in direction / np.linalg.norm(direction))
    waves = (
        Wave(-0.010, 0.026, (1.1 * x, 1.1 * y, 1.1 * z)),
        Wave(0.045, 0.028, (1.3 * x, 1.3 * y, 1.3 * z)),
        replace(_T, centre_s=0.34, vector=(-0.45 * x, -0.45 * y, -0.45 * z), width_s=0.06),
    )
    return Beat((), waves)


def st_shift(vector: tuple[float, float, float]) -> Wave:
    """A flat shift of the ST segment, from the end of the QRS complex into the T wave."""
    return Wave(0.17, 0.075, vector, power=8.0, follows_rate=True)


def beat_intervals_ms(beat: Beat, rr_s: float) -> dict[str, float]:
    """PR (if there is a P wave), QRS and QT of a beat, from and to where its Gaussian waves have fallen to 5 %."""
    qrs = [wave for wave in beat.ventricular if not wave.follows_rate]
    repolarisation = [wave for wave in beat.ventricular if wave.follows_rate and wave.power == 2.0]
    onset = min(wave.centre_s - _EDGE * wave.width_s for wave in qrs)
    found = {
        "qrs_ms": max(wave.centre_s + _EDGE * wave.width_s for wave in qrs) - onset,
        "qt_ms": max(wave.centre_s * _stretch(rr_s) + _EDGE * wave.width_s for wave in repolarisation) - onset,
    }
    if beat.atrial:
        found["pr_ms"] = onset - min(wave.centre_s - _EDGE * wave.width_s for wave in beat.atrial)
    return {name: 1000 * seconds for name, seconds in found.items()}


def _stretch(rr_s: float) -> float:
    """How much later than at 60 beats a minute the T wave comes."""
    return float(np.clip(np.sqrt(rr_s), 0.7, 1.15))


def render_dipole(beats: list[Beat], r_times_s: Array, rr_s: Array, n_samples: int, rate_hz: float) -> Array:
    """(3, time): the dipole of these beats, with their R peaks at these times, after these RR intervals."""
    dipole = np.zeros((3, n_samples))
    for beat, peak, rr in zip(beats, r_times_s, rr_s, strict=True):
        stretch = _stretch(rr)
        for wave in (*beat.atrial, *beat.ventricular):
            centre = peak + wave.centre_s * (stretch if wave.follows_rate else 1.0)
            first = max(0, int((centre - 5 * wave.width_s) * rate_hz))
            last = min(n_samples, int((centre + 5 * wave.width_s) * rate_hz) + 2)
            if first < last:
                distance = np.abs(np.arange(first, last) / rate_hz - centre) / wave.width_s
                bump = np.exp(-0.5 * distance**wave.power)
                dipole[:, first:last] += np.multiply.outer(wave.vector, bump)
    return dipole
