"""Ventricular fibrillation."""

from dataclasses import dataclass

import numpy as np

from ecgquorum.corruptions.additive_noise import draw_envelope
from ecgquorum.corruptions.ood.noise import match_power
from ecgquorum.corruptions.transform import Array, Generator, SignalTransform
from ecgquorum.recordings import STANDARD_LEADS, UNNAMED_LEAD
from ecgquorum.simulation.dipole import lead_field

_N_WAVES = 3


@dataclass(frozen=True)
class VentricularFibrillation(SignalTransform):
    """Chaotic waves of 3 to 7 Hz whose frequency, size and direction wander; no beats."""

    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:
        """Sum wandering oscillations of a dipole, in millivolts."""
        n_samples = signal.shape[1]
        heart = np.zeros((3, n_samples))
        for _ in range(_N_WAVES):
            hertz = np.clip(rng.uniform(3.5, 6.5) + np.cumsum(rng.normal(0, 0.8 / np.sqrt(rate_hz), n_samples)), 2.5, 8)
            phase = 2 * np.pi * np.cumsum(hertz) / rate_hz + rng.uniform(0, 2 * np.pi)
            heart += rng.normal(0, 0.5, (3, 1)) * np.sin(phase) * draw_envelope(rng, n_samples, rate_hz, 0.5)
        known = (*STANDARD_LEADS, UNNAMED_LEAD)
        places = lead_field(tuple(lead if lead in known else UNNAMED_LEAD for lead in leads))
        return match_power(places @ heart + rng.normal(0, 0.01, signal.shape), signal)
