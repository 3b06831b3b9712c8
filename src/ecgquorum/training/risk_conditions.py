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
from ecgquorum.corruptions import CORRUPTIONS, Corruption, SignalTransform, build_corruption
from ecgquorum.ensemble import Ensemble
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes.study import EPSILONS

Indices = NDArray[np.int64]

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


def corruption_condition(corruption: SignalTransform, name: str = "") -> RiskCondition:
    """A corruption of the recorded signal, before it is scaled for the ensemble.

    name: in the card; "": that of the corruption, with its severity
    """
    kind = CORRUPTIONS.name_of(type(corruption))
    known = f"{kind}, severity {corruption.severity}" if isinstance(corruption, Corruption) else kind
    name = name or known

    def make(ensemble: Ensemble, cohort: Cohort, indices: Indices, seed: int) -> Batch:
        signals = []
        for index in indices:
            rng = numpy_generator(seed, "risk", name, cohort.rows[index].id)
            signal = corruption(cohort.signal(int(index)), cohort.rate_hz, leads=cohort.leads, generator=rng)
            signals.append(ensemble.input.scale(signal))
        return make_batch(signals, ensemble.input.n_window, cohort.labels[indices].tolist())

    return RiskCondition(name, make)


RISK_CORRUPTIONS = (
    *("baseline-wander", "electrode-motion", "muscle", "mains", "motion-bursts"),
    *("lead-off", "missing-samples", "clipping", "amplitude-error", "rate-error"),
)
"""Corruptions that the risk is fitted with; others are left for tests of what it does under unknown ones."""

RISK_SEVERITIES = (3, 4)
"""At 5, a person might not give the recording its label either."""


def default_conditions(spec: InputSpec) -> Sequence[RiskCondition]:
    """PGD at the paper's second and last strengths on member 0, first and second on the ensemble; corruptions.

    The amplitude error is left out where the input is scaled to its peak, which undoes it.
    """
    first, second, *_, last = EPSILONS[spec.scaling]
    attacks = [("member 0", second), ("member 0", last), ("ensemble", first), ("ensemble", second)]
    undone = ("amplitude-error",) if spec.scaling == "unit" else ()
    names = [name for name in RISK_CORRUPTIONS if name not in undone]
    return [
        *(attack_condition(target, epsilon) for target, epsilon in attacks),
        *(corruption_condition(build_corruption(name, severity)) for name in names for severity in RISK_SEVERITIES),
    ]
