"""Noise that is added to a recording at a signal-to-noise ratio.

    SNR = 10 log10(variance of the recording / power of the noise), in dB, both means over the leads.

Noise arises at electrodes, so leads that share an electrode share its noise.
"""

from abc import abstractmethod

import numpy as np

from ecgquorum.corruptions.corruption import Corruption
from ecgquorum.corruptions.transform import Array, Generator

SNR_DB = (18.0, 12.0, 6.0, 0.0, -6.0)
"""Of the five severities; the MIT-BIH Noise Stress Test uses the same steps."""

_QUIET_MV2 = 1e-4
"""Power of a recording that is taken for flat: 0.01 mV; noise is never scaled to less."""

_ARMS_AND_LEG = {
    "I": {"LA": 1.0, "RA": -1.0},
    "II": {"LL": 1.0, "RA": -1.0},
    "III": {"LL": 1.0, "LA": -1.0},
    "aVR": {"RA": 1.0, "LA": -0.5, "LL": -0.5},
    "aVL": {"LA": 1.0, "RA": -0.5, "LL": -0.5},
    "aVF": {"LL": 1.0, "RA": -0.5, "LA": -0.5},
}
_CENTRAL_TERMINAL = {"RA": -1 / 3, "LA": -1 / 3, "LL": -1 / 3}


class AdditiveNoise(Corruption):
    """Noise of a drawn shape, scaled to the signal-to-noise ratio of the severity."""

    levels = SNR_DB
    unit = "dB SNR"

    @abstractmethod
    def draw(self, rng: Generator, n_sources: int, n_samples: int, rate_hz: float) -> Array:
        """Draw the noise of so many electrodes, (source, time), of any size."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:
        """Add the noise of the electrodes to the leads."""
        mixing = electrode_mixing(leads)
        noise = mixing @ self.draw(rng, mixing.shape[1], signal.shape[1], rate_hz)
        return signal + scale_to_snr(noise, signal, self.level)


def scale_to_snr(noise: Array, signal: Array, snr_db: float) -> Array:
    """Scale noise (lead, time) so that the signal has this ratio to it."""
    power = max(float(signal.var(axis=1).mean()), _QUIET_MV2) / 10 ** (snr_db / 10)
    drawn = float((noise**2).mean())
    return np.asarray(noise * np.sqrt(power / drawn)) if drawn > 0 else noise


def electrode_mixing(leads: tuple[str, ...]) -> Array:
    """(lead, electrode): how leads are computed from the potentials of electrodes; an unknown lead has its own."""
    rows = []
    for lead in leads:
        chest = {lead: 1.0} | (_CENTRAL_TERMINAL if lead in ("V1", "V2", "V3", "V4", "V5", "V6") else {})
        rows.append(_ARMS_AND_LEG.get(lead, chest))
    electrodes = list(dict.fromkeys(name for row in rows for name in row))
    return np.array([[row.get(name, 0.0) for name in electrodes] for row in rows])


def shape_noise(rng: Generator, shape: tuple[int, int], rate_hz: float, bands: dict[float, float]) -> Array:
    """Draw Gaussian noise (source, time) with a given spectrum.

    bands: upper edge of each frequency band in Hz, the first from 0 -> its share of the power
    """
    n_samples = shape[1]
    spectrum = np.fft.rfft(rng.standard_normal((shape[0], max(n_samples, 2))), axis=1)
    hertz = np.fft.rfftfreq(max(n_samples, 2), 1 / rate_hz)
    edges = np.array([0.0, *bands])
    density = np.array([*bands.values()]) / np.diff(edges)
    band = np.searchsorted(edges, hertz, side="right") - 1
    inside = (band < len(density)) & (hertz > 0)
    gain = np.where(inside, np.sqrt(density[np.minimum(band, len(density) - 1)]), 0.0)
    return np.asarray(np.fft.irfft(spectrum * gain, max(n_samples, 2), axis=1)[:, :n_samples])


def draw_envelope(rng: Generator, n_samples: int, rate_hz: float, spread: float) -> Array:
    """(time,): a size that waxes and wanes over seconds: exp of a slow walk with this standard deviation."""
    n_knots = int(n_samples / rate_hz / 2) + 3
    knots = rng.normal(0.0, spread, n_knots)
    return np.exp(np.interp(np.linspace(0, n_knots - 1, n_samples), np.arange(n_knots), knots))
