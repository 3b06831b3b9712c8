"""Simulated cohorts that look like the two data sets: `synthetic:physionet2017` and `synthetic:cpsc2018`."""

from functools import partial
from typing import Any

import numpy as np

from ecgquorum._internal.seeds import derive_seed, numpy_generator
from ecgquorum.cohorts.sources import cpsc2018, physionet2017
from ecgquorum.cohorts.sources.source import Source, SourceRecord
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
    made: dict[str, SourceRecord] = {}
    for index in range(records):
        record, label = f"S{index:05d}", str(labels[index])
        options = {"seed": derive_seed(seed, name, index), "seconds": seconds, "rate_hz": rate_hz, "leads": leads}
        make = partial(_simulate, label, noise=float(noise[index]), recording_id=record, **options)
        made[record] = SourceRecord(labels=(label,), simulate=make)
    return Source(f"simulated {name}", classes, class_names, made, leads, rate_hz)


def _simulate(label: str, **options: Any) -> Recording:
    return simulate(label, **options).recording
