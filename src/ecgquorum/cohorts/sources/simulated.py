"""Simulated cohorts that look like the two data sets: `synthetic:physionet2017` and `synthetic:cpsc2018`."""

from functools import partial

import numpy as np

from ecgquorum._internal.seeds import derive_seed, numpy_generator
from ecgquorum.cohorts.sources import cpsc2018, physionet2017
from ecgquorum.cohorts.sources.source import Source
from ecgquorum.errors import CohortError
from ecgquorum.recordings import STANDARD_LEADS, UNNAMED_LEAD, Recording
from ecgquorum.simulation import simulate

_USUAL_NOISE, _NOISE_SPREAD = 2.5, 0.9  # recordings from clean to barely legible
PREFIX = "synthetic:"
_KINDS = {
    "physionet2017": (
        physionet2017.CLASS_NAMES,
        (UNNAMED_LEAD,),
        physionet2017.RATE_HZ,
        (0.45, 0.2, 0.25, 0.1),
    ),
    "cpsc2018": (cpsc2018.CLASS_NAMES, STANDARD_LEADS, cpsc2018.RATE_HZ, (1 / 9,) * 9),
}


def synthetic(name: str, *, records: int, seconds: float, seed: int) -> Source:
    """`records` simulated recordings with the classes, leads and rate of the data set `name`."""
    if name not in _KINDS:
        raise CohortError(f"expected one of {', '.join(PREFIX + kind for kind in _KINDS)}, found {PREFIX}{name}")
    class_names, leads, rate_hz, shares = _KINDS[name]
    classes = tuple(class_names)
    rng = numpy_generator(seed, "cohort", name)
    labels = rng.choice(classes, size=records, p=shares)
    noise = rng.lognormal(np.log(_USUAL_NOISE), _NOISE_SPREAD, size=records)
    load = {}
    for index in range(records):
        record, drawn = f"S{index:05d}", derive_seed(seed, name, index)
        load[record] = partial(_load, str(labels[index]), drawn, seconds, rate_hz, leads, float(noise[index]), record)
    return Source(f"simulated {name}", classes, class_names, load, leads, rate_hz)


def _load(
    label: str, seed: int, seconds: float, rate_hz: float, leads: tuple[str, ...], noise: float, record: str
) -> Recording:
    return simulate(
        label, seed=seed, seconds=seconds, rate_hz=rate_hz, leads=leads, noise=noise, recording_id=record
    ).recording
