"""A paced rhythm."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.transform import Array, Generator, SignalTransform
from ecgquorum.recordings import STANDARD_LEADS, UNNAMED_LEAD
from ecgquorum.simulation.dipole import lead_field, render_dipole, ventricular_beat

_SPIKE_S, _BEFORE_R_S = 0.002, 0.09
_SPIKE_MV = (1.0, 4.0)


@dataclass(frozen=True)
class PacedRhythm(SignalTransform):
    """Ventricular pacing at 60 to 80 a minute: a spike, a broad QRS from the apex upwards, no P wave."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:
        """Simulate the beats, spikes and a little noise."""
        n_samples = signal.shape[1]
        period_s = 60 / rng.uniform(60.0, 80.0)
        times = np.arange(rng.uniform(-period_s, 0), n_samples / rate_hz + period_s, period_s)
        apex_up = np.array([rng.uniform(0.4, 1), rng.uniform(-1, -0.3), rng.uniform(0, 0.5)])
        beat = ventricular_beat(apex_up)
        heart = render_dipole([beat] * len(times), times, np.full(len(times), period_s), n_samples, rate_hz)
        known = (*STANDARD_LEADS, UNNAMED_LEAD)
        paced = lead_field(tuple(lead if lead in known else UNNAMED_LEAD for lead in leads)) @ heart
        paced += rng.normal(0, 0.01, paced.shape)
        places = np.floor((times - _BEFORE_R_S) * rate_hz).astype(int)
        places = places[(places >= 0) & (places < n_samples)]
        height = rng.uniform(*_SPIKE_MV) * min(1.0, _SPIKE_S * rate_hz)
        paced[:, places] += height * rng.uniform(0.3, 1.0, (len(leads), 1))
        return np.asarray(paced)
