"""Conditions under which the risk is fitted, beside natural recordings: attacked and corrupted ones.

A condition is a name and a function that makes the batch, so that any list of them can be given to `fit_risk`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.seeds import numpy_generator, torch_generator
from ecgquorum.attacks import PGD
from ecgquorum.cohorts import Batch, Cohort, make_batch
from ecgquorum.ensemble import Ensemble
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes.study import EPSILONS
from ecgquorum.simulation import noise

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Corruption = Callable[[np.random.Generator, Array, float], Array]
"""(random numbers, (lead, time) in millivolts, rate in Hz) -> the corrupted signal."""

STEPS, STEP = 10, 0.2
"""Of PGD: how many, and each as a share of epsilon."""


@dataclass(frozen=True)
class RiskCondition:
    """One way in which recordings reach an ensemble.

    name: in the card
    make: (ensemble, cohort, indices of recordings, seed) -> their batch, in the units of the ensemble's input
    """

    name: str
    make: Callable[[Ensemble, Cohort, Indices, int], Batch]


def attack_condition(target: str, epsilon: float) -> RiskCondition:
    """PGD within epsilon, in the units of the input, on "member 0" or on the "ensemble"."""

    def make(ensemble: Ensemble, cohort: Cohort, indices: Indices, seed: int) -> Batch:
        batch = cohort.batch(indices, ensemble.input).to(ensemble.device)
        model = ensemble if target == "ensemble" else ensemble.members[0]
        generator = torch_generator(seed, "risk", target, int(indices[0]))
        attack = PGD(epsilon, n_steps=STEPS, step=STEP)
        return batch._replace(signal=attack(model, batch.signal, batch.label, batch.valid, generator=generator))

    return RiskCondition(f"pgd {epsilon:g} on {target}", make)


def corruption_condition(name: str, corrupt: Corruption) -> RiskCondition:
    """A corruption of the recorded signal, before it is scaled for the ensemble."""

    def make(ensemble: Ensemble, cohort: Cohort, indices: Indices, seed: int) -> Batch:
        signals = []
        for index in indices:
            rng = numpy_generator(seed, "risk", name, cohort.rows[index].id)
            signal = corrupt(rng, np.array(cohort.signal(int(index)), dtype=np.float64), cohort.rate_hz)
            signals.append(ensemble.input.scale(signal.astype(np.float32)))
        return make_batch(signals, ensemble.input.n_window, cohort.labels[indices].tolist())

    return RiskCondition(name, make)


def add_noise(draw: Corruption, snr_db: float) -> Corruption:
    """Add drawn noise at a signal-to-noise ratio: 10 log10 of the variance of all leads over the power of the noise."""

    def corrupt(rng: np.random.Generator, signal: Array, rate_hz: float) -> Array:
        drawn = draw(rng, signal, rate_hz)
        power = signal.var(axis=1).mean() / 10 ** (snr_db / 10)
        return np.asarray(signal + drawn * np.sqrt(power / max(float((drawn**2).mean()), 1e-12)))

    return corrupt


def gain_error(factor: float) -> Corruption:
    """Multiply the signal by the factor or, for every second recording, divide it."""

    def corrupt(rng: np.random.Generator, signal: Array, rate_hz: float) -> Array:  # noqa: ARG001
        return np.asarray(signal * (factor if rng.random() < 0.5 else 1 / factor))

    return corrupt


_NOISES: dict[str, Corruption] = {
    "baseline wander": lambda rng, x, rate_hz: noise.baseline_wander(rng, len(x), x.shape[1], rate_hz, 1.0),
    "muscle noise": lambda rng, x, _: noise.muscle_noise(rng, len(x), x.shape[1], 1.0),
    "electrode motion": lambda rng, x, rate_hz: noise.electrode_motion(rng, len(x), x.shape[1], rate_hz, 1.0),
}


def default_conditions(spec: InputSpec) -> Sequence[RiskCondition]:
    """PGD at the paper's second and last strengths on member 0, first and second on the ensemble; noise; gain.

    Gain is left out where the input is scaled to its peak, which undoes it.
    """
    first, second, *_, last = EPSILONS[spec.scaling]
    attacks = [("member 0", second), ("member 0", last), ("ensemble", first), ("ensemble", second)]
    found = [attack_condition(target, epsilon) for target, epsilon in attacks]
    for name, draw in _NOISES.items():
        found += [corruption_condition(f"{name}, {snr_db:g} dB", add_noise(draw, snr_db)) for snr_db in (6.0, -3.0)]
    return (
        found if spec.scaling == "unit" else [*found, corruption_condition("gain error, factor 2.5", gain_error(2.5))]
    )
