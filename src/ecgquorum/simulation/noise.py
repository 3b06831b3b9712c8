"""Disturbances: baseline wander, mains, muscle noise, electrode motion; (lead, time) in millivolts."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def baseline_wander(rng: np.random.Generator, n_leads: int, n_samples: int, rate_hz: float, size_mv: float) -> Array:
    """Breathing and slow drift: three slow sines for each lead."""
    time = np.arange(n_samples) / rate_hz
    hertz, phases = rng.uniform(0.05, 0.5, (3, 1)), rng.uniform(0, 2 * np.pi, (3, 1))
    waves = np.sin(2 * np.pi * hertz * time + phases)
    return np.asarray(rng.normal(0, size_mv / np.sqrt(3), (n_leads, 3)) @ waves)


def mains_hum(rng: np.random.Generator, n_leads: int, n_samples: int, rate_hz: float, size_mv: float) -> Array:
    """50 or 60 Hz, of one phase, with a random amplitude on each lead."""
    hertz = rng.choice([50.0, 60.0])
    hum = np.sin(2 * np.pi * hertz * np.arange(n_samples) / rate_hz + rng.uniform(0, 2 * np.pi))
    return np.asarray(np.multiply.outer(rng.normal(0, size_mv, n_leads), hum))


def muscle_noise(rng: np.random.Generator, n_leads: int, n_samples: int, size_mv: float) -> Array:
    """Broad noise with little at low frequencies, waxing and waning over seconds."""
    white = rng.standard_normal((n_leads, n_samples + 1))
    shaped = (white[:, 1:] - 0.6 * white[:, :-1]) * _slow_envelope(rng, n_samples)
    return np.asarray(size_mv / np.sqrt(1.36) * shaped)


def electrode_motion(rng: np.random.Generator, n_leads: int, n_samples: int, rate_hz: float, size_mv: float) -> Array:
    """Sudden shifts that decay within a second or so, about one every four seconds."""
    noise = np.zeros((n_leads, n_samples))
    for _ in range(rng.poisson(n_samples / rate_hz / 4)):
        start = int(rng.integers(n_samples))
        length = min(n_samples - start, int(rate_hz * rng.uniform(0.2, 2.0)))
        decay = np.exp(-np.linspace(0, 4, length)) * np.sin(np.linspace(0, np.pi * rng.uniform(1, 6), length))
        noise[:, start : start + length] += np.multiply.outer(rng.normal(0, size_mv, n_leads), decay)
    return noise


def _slow_envelope(rng: np.random.Generator, n_samples: int) -> Array:
    knots = rng.uniform(0.5, 1.5, 8)
    return np.interp(np.linspace(0, 7, n_samples), np.arange(8), knots)
