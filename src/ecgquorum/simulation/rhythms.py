"""A seeded simulator of ECG recordings, for the demo and for tests.

A rhythm gives the times and kinds of beats; `dipole.py` converts them to leads; `noise.py` adds the usual disturbances.
Every class of both data sets has its model here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.errors import RecordingError
from ecgquorum.recordings.leads import STANDARD_LEADS
from ecgquorum.recordings.recording import Recording
from ecgquorum.simulation import noise as electrode
from ecgquorum.simulation.dipole import (
    P_VECTOR,
    Array,
    Beat,
    Wave,
    beat_intervals_ms,
    lead_field,
    left_bundle_beat,
    narrow_beat,
    p_wave,
    render_dipole,
    right_bundle_beat,
    st_shift,
    ventricular_beat,
)

Generator = np.random.Generator
Vector = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated recording and its ground truth.

    beat_times_s: the R peaks inside the recording
    beat_kinds:   one letter each: N conducted, S premature atrial, V premature ventricular
    intervals_ms: median PR, QRS and QT of its conducted beats, as `beat_intervals_ms` defines them
    """

    recording: Recording
    beat_times_s: Array
    beat_kinds: tuple[str, ...]
    intervals_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Rhythm:
    """Beats: R peak times, the RR interval before each, shape and kind."""

    times_s: Array
    rr_s: Array
    beats: list[Beat]
    kinds: list[str]


def simulate(
    label: str,
    *,
    seed: int,
    seconds: float = 30.0,
    rate_hz: float = 300.0,
    leads: tuple[str, ...] = STANDARD_LEADS,
    noise: float = 1.0,
    recording_id: str | None = None,
) -> Simulation:
    """Simulate one recording of the class `label` (see `LABELS`).

    noise: factor on the usual disturbances; 0 adds none. The same arguments give the same samples.
    """
    if label not in _MODELS:
        raise RecordingError(f"expected a class of {', '.join(_MODELS)}, found {label!r}")
    rng = numpy_generator(seed, "simulate", label)
    n_samples = round(seconds * rate_hz)
    rhythm = _MODELS[label](rng, seconds)
    heart = render_dipole(rhythm.beats, rhythm.times_s, rhythm.rr_s, n_samples, rate_hz)
    if label in ("A", "AF"):
        heart += _fibrillation(rng, n_samples, rate_hz)
    signal = lead_field(leads) @ (_random_rotation(rng) @ heart)
    signal += _disturbance(rng, len(leads), n_samples, rate_hz, noise)
    if label == "~":
        signal = signal * rng.uniform(0.0, 0.6) + _strong_noise(rng, len(leads), n_samples, rate_hz)
    inside = (rhythm.times_s >= 0) & (rhythm.times_s < seconds)
    recording = Recording(
        id=recording_id or f"simulated-{label}-{seed}",
        signal=signal.astype(np.float32),
        rate_hz=rate_hz,
        leads=leads,
        labels=(label,),
        source=f"simulated {label}, seed {seed}",
    )
    kinds = tuple(kind for kind, kept in zip(rhythm.kinds, inside, strict=True) if kept)
    return Simulation(recording, rhythm.times_s[inside], kinds, _median_intervals(rhythm, inside))


def _median_intervals(rhythm: _Rhythm, inside: NDArray[np.bool_]) -> dict[str, float]:
    beats = zip(rhythm.beats, rhythm.rr_s, rhythm.kinds, inside, strict=True)
    each = [beat_intervals_ms(beat, float(rr)) for beat, rr, kind, kept in beats if kept and kind == "N"]
    return {name: float(np.median([one[name] for one in each])) for name in (each[0] if each else ())}


# --- times of beats ---------------------------------------------------------------------------------------------------


def _sinus_intervals(rng: Generator, seconds: float, rate_bpm: tuple[float, float] = (55, 95)) -> Array:
    """RR intervals with respiratory and slower variation."""
    mean_s = 60 / rng.uniform(*rate_bpm)
    n_beats = int(seconds / mean_s * 1.3) + 6
    time = np.arange(n_beats) * mean_s
    breath = rng.uniform(0.01, 0.10) * np.sin(2 * np.pi * rng.uniform(0.15, 0.35) * time + rng.uniform(0, 6.3))
    slow = rng.uniform(0.005, 0.02) * np.sin(2 * np.pi * 0.1 * time + rng.uniform(0, 6.3))
    return np.asarray(mean_s * (1 + breath + slow + rng.normal(0, 0.008, n_beats)))


def _steady(rng: Generator, intervals: Array, beat: Beat) -> _Rhythm:
    """A rhythm of identical beats."""
    times = np.cumsum(intervals) - rng.uniform(0.2, 1.0) * intervals[0] - intervals[0]
    return _Rhythm(times, intervals, [beat] * len(times), ["N"] * len(times))


def _with_ectopy(rng: Generator, intervals: Array, beat: Beat, ectopic: Beat, kind: str) -> _Rhythm:
    """Some beats come early; a pause follows, fully compensatory after ventricular ones."""
    intervals = intervals.copy()
    share = rng.uniform(0.10, 0.30)
    early = rng.random(len(intervals)) < share
    early[:2] = early[-3:] = False
    early[rng.integers(3, max(4, len(intervals) // 2))] = True  # at least one, and early enough to be seen
    early[1:] &= ~early[:-1]
    beats, kinds = [beat] * len(intervals), ["N"] * len(intervals)
    for index in np.flatnonzero(early):
        coupling = rng.uniform(0.55, 0.82)
        regular = intervals[index]
        intervals[index] = coupling * regular
        intervals[index + 1] = regular * (2 - coupling if kind == "V" else rng.uniform(1.05, 1.25))
        beats[index], kinds[index] = ectopic, kind
    rhythm = _steady(rng, intervals, beat)
    return _Rhythm(rhythm.times_s, rhythm.rr_s, beats, kinds)


# --- the classes -----------------------------------------------------------------------------------------------------


def _normal_p_wave(rng: Generator) -> Wave:
    """A P wave at its normal time, of random size."""
    x, y, z = (float(v) for v in np.array(P_VECTOR) * rng.uniform(0.4, 1.3))
    return p_wave(rng.uniform(0.125, 0.185), (x, y, z))


def _normal(rng: Generator, seconds: float) -> _Rhythm:
    return _steady(rng, _sinus_intervals(rng, seconds), narrow_beat(_normal_p_wave(rng)))


def _atrial_fibrillation(rng: Generator, seconds: float) -> _Rhythm:
    mean_s, spread = rng.uniform(0.5, 0.9), rng.uniform(0.12, 0.28)
    intervals = np.clip(rng.lognormal(np.log(mean_s), spread, int(seconds / mean_s * 1.5) + 8), 0.3, 2.0)
    return _steady(rng, intervals, narrow_beat(None))


def _first_degree_block(rng: Generator, seconds: float) -> _Rhythm:
    return _steady(rng, _sinus_intervals(rng, seconds, (45, 75)), narrow_beat(p_wave(rng.uniform(0.22, 0.32))))


def _left_bundle_block(rng: Generator, seconds: float) -> _Rhythm:
    return _steady(rng, _sinus_intervals(rng, seconds), left_bundle_beat(_normal_p_wave(rng)))


def _right_bundle_block(rng: Generator, seconds: float) -> _Rhythm:
    return _steady(rng, _sinus_intervals(rng, seconds), right_bundle_beat(_normal_p_wave(rng)))


def _premature_atrial(rng: Generator, seconds: float) -> _Rhythm:
    strange_p = p_wave(rng.uniform(0.11, 0.15), (0.04, -0.12, 0.05))
    beat = narrow_beat(_normal_p_wave(rng))
    return _with_ectopy(rng, _sinus_intervals(rng, seconds), beat, narrow_beat(strange_p), "S")


def _premature_ventricular(rng: Generator, seconds: float) -> _Rhythm:
    direction = np.array([rng.choice([-1.0, 1.0]), rng.uniform(-1, 1), rng.uniform(-1, 1)])
    beat = narrow_beat(_normal_p_wave(rng))
    return _with_ectopy(rng, _sinus_intervals(rng, seconds), beat, ventricular_beat(direction), "V")


def _st_shift_model(*territories: Vector) -> Callable[[Generator, float], _Rhythm]:
    def model(rng: Generator, seconds: float) -> _Rhythm:
        x, y, z = (float(v) for v in np.array(territories[rng.integers(len(territories))]) * rng.uniform(0.9, 1.8))
        beat = narrow_beat(_normal_p_wave(rng)).with_waves(st_shift((x, y, z)))
        return _steady(rng, _sinus_intervals(rng, seconds), beat)

    return model


def _slow_or_fast(rng: Generator, seconds: float) -> _Rhythm:
    rate = (36.0, 46.0) if rng.random() < 0.5 else (112.0, 145.0)
    return _steady(rng, _sinus_intervals(rng, seconds, rate), narrow_beat(_normal_p_wave(rng)))


def _other(rng: Generator, seconds: float) -> _Rhythm:
    """Neither normal nor fibrillation: premature beats, blocks, a slow or a fast sinus."""
    models = (
        _premature_atrial,
        _premature_ventricular,
        _first_degree_block,
        _left_bundle_block,
        _right_bundle_block,
        _slow_or_fast,
    )
    return models[rng.integers(len(models))](rng, seconds)


_MODELS: dict[str, Callable[[Generator, float], _Rhythm]] = {
    "N": _normal,
    "A": _atrial_fibrillation,
    "O": _other,
    "~": _normal,
    "Normal": _normal,
    "AF": _atrial_fibrillation,
    "I-AVB": _first_degree_block,
    "LBBB": _left_bundle_block,
    "RBBB": _right_bundle_block,
    "PAC": _premature_atrial,
    "PVC": _premature_ventricular,
    "STD": _st_shift_model((-0.14, -0.10, 0.08)),
    "STE": _st_shift_model((0.06, 0.0, -0.20), (-0.05, 0.22, 0.0)),
}

LABELS = tuple(_MODELS)
"""The classes that can be simulated: those of PhysioNet 2017 (N, A, O, ~), then those of CPSC 2018."""


# --- beside the beats ------------------------------------------------------------------------------------------------


def _fibrillation(rng: Generator, n_samples: int, rate_hz: float) -> Array:
    """Fibrillatory waves: a wandering 5-8 Hz oscillation with overtones, strongest towards V1."""
    hertz = rng.uniform(5, 8) + np.cumsum(rng.normal(0, 0.25 / np.sqrt(rate_hz), n_samples))
    phase = 2 * np.pi * np.cumsum(hertz) / rate_hz
    swell = 1 + 0.4 * np.sin(2 * np.pi * 0.3 * np.arange(n_samples) / rate_hz + rng.uniform(0, 6.3))
    wave = swell * (np.sin(phase) + 0.4 * np.sin(2 * phase + 0.7))
    return np.asarray(np.multiply.outer(rng.uniform(0.02, 0.12) * np.array([-0.4, 0.6, -0.8]), wave))


def _random_rotation(rng: Generator) -> Array:
    """(3, 3): a small random rotation of the heart, and a random gain."""
    a, b, c = rng.normal(0, 0.12, 3)
    turn = np.array([[1, -c, b], [c, 1, -a], [-b, a, 1]])
    return np.asarray(rng.uniform(0.75, 1.25) * turn)


def _disturbance(rng: Generator, n_leads: int, n_samples: int, rate_hz: float, noise: float) -> Array:
    if noise == 0:
        return np.zeros((n_leads, n_samples))
    return noise * (
        electrode.baseline_wander(rng, n_leads, n_samples, rate_hz, rng.uniform(0.02, 0.12))
        + electrode.mains_hum(rng, n_leads, n_samples, rate_hz, rng.uniform(0.0, 0.012))
        + electrode.muscle_noise(rng, n_leads, n_samples, rng.uniform(0.005, 0.025))
        + electrode.electrode_motion(rng, n_leads, n_samples, rate_hz, rng.uniform(0.0, 0.05))
    )


def _strong_noise(rng: Generator, n_leads: int, n_samples: int, rate_hz: float) -> Array:
    """Noise in which no rhythm can be read."""
    return np.asarray(
        electrode.baseline_wander(rng, n_leads, n_samples, rate_hz, rng.uniform(0.2, 0.8))
        + electrode.muscle_noise(rng, n_leads, n_samples, rng.uniform(0.08, 0.4))
        + electrode.electrode_motion(rng, n_leads, n_samples, rate_hz, rng.uniform(0.3, 2.0))
    )
