"""Corruptions and out-of-distribution sets of an evaluation, and for how many recordings."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.corruptions import (
    ALL,
    CORRUPTIONS,
    OOD_SETS,
    SEVERITIES,
    Corruption,
    SignalTransform,
    expand_severities,
    list_corruptions,
)
from ecgquorum.errors import CorruptionError
from ecgquorum.evaluation.conditions import CORRUPTION, OOD, RESERVED_NAMES, Condition
from ecgquorum.registry import Registry

Signal = NDArray[np.float32]

UNSEEN = "unseen"
"""The name for recordings of classes that the ensembles do not know."""


@dataclass(frozen=True)
class TransformCondition:
    """A change of recordings that does not depend on a model.

    name:    in tables; the random numbers depend on it, but not on the severity
    unseen:  a class whose recordings take the place of the evaluated ones; "": the recordings are transformed
    records: for at most so many recordings, drawn at random; None: for all
    """

    transform: SignalTransform | None
    name: str
    unseen: str = ""
    records: int | None = None

    def __post_init__(self) -> None:
        if self.name in RESERVED_NAMES:
            raise CorruptionError(f"a corruption cannot be called {self.name!r}, which tables use for something else")

    @property
    def condition(self) -> Condition:
        """The condition as a scorecard keeps it."""
        if isinstance(self.transform, Corruption):
            once = len(self.transform.levels) == 1
            return Condition(self.name, CORRUPTION, 1.0 if once else float(self.transform.severity), self.records)
        return Condition(self.name, OOD, 0.0, self.records)

    def apply(
        self,
        signal: Signal,
        rate_hz: float,
        leads: tuple[str, ...],
        stream: str,
        seed: int,
        valid: NDArray[np.bool_] | None = None,
    ) -> Signal:
        """Transform (lead, time) in millivolts; `stream` names the random numbers of the recording."""
        assert self.transform is not None  # noqa: S101 (sets of unseen classes are not transformed)
        rng = numpy_generator(seed, self.condition.target, self.name, stream)
        changed = self.transform(np.array(signal), rate_hz, leads=leads, valid=valid, generator=rng)
        return np.asarray(changed, dtype=np.float32)


def corruption_conditions(
    corruptions: Iterable[Corruption | str], severities: Iterable[int], leads: tuple[str, ...], records: int | None
) -> list[TransformCondition]:
    """Wrap corruptions; a name stands for that corruption at every severity, "all" for all that apply to the leads."""
    severities, made = tuple(severities), dict[tuple[str, int], TransformCondition]()
    for one in corruptions:
        if isinstance(one, Corruption):
            found = {_name(one, CORRUPTIONS): [one]}
        else:
            names = list_corruptions(leads) if one == ALL else (one,)
            found = {name: expand_severities(name, severities) for name in names}
        for name, several in found.items():
            for corruption in several:
                corruption.check_leads(leads)
                key = (name, corruption.severity)
                if key in made and made[key].transform != corruption:
                    raise CorruptionError(f"two different corruptions are called {name}, severity {key[1]}")
                made[key] = TransformCondition(corruption, name, records=records)
    order = list(dict.fromkeys(name for name, _ in made))
    return [made[key] for key in sorted(made, key=lambda key: (order.index(key[0]), key[1]))]


def ood_conditions(
    sets: Iterable[SignalTransform | str],
    leads: tuple[str, ...],
    unseen: Mapping[str, int],
    records: int | None,
) -> list[TransformCondition]:
    """Wrap sets of recordings out of distribution; "all" stands for all that ship and the unseen classes.

    unseen: classes that the ensembles do not know -> number of recordings
    """
    made: dict[str, TransformCondition] = {}
    for one in sets:
        if isinstance(one, SignalTransform):
            one.check_leads(leads)
            name = _name(one, OOD_SETS)
            if name in made and made[name].transform != one:
                raise CorruptionError(f"two different sets out of distribution are called {name}")
            made[name] = TransformCondition(one, name, records=records)
            continue
        if one == UNSEEN and not unseen:
            raise CorruptionError(
                "the cohort has no class that the ensembles do not know; hold one out in training (hold_out in the "
                "recipe), or leave one out of the labels"
            )
        for name in OOD_SETS.builtin if one == ALL else () if one == UNSEEN else (one,):
            made[name] = TransformCondition(OOD_SETS.get(name)(), name, records=records)
        for name, count in unseen.items() if one in (ALL, UNSEEN) else ():
            some = min(count, records) if records else count
            made[f"{UNSEEN} {name}"] = TransformCondition(None, f"{UNSEEN} {name}", name, some)
    return list(made.values())


def describe_shift(conditions: Iterable[TransformCondition]) -> dict[str, Any]:
    """Describe corruptions and sets in plain values, as an evaluation recipe does."""
    conditions = list(conditions)
    corrupted = [one for one in conditions if isinstance(one.transform, Corruption)]
    severities = sorted({one.transform.severity for one in corrupted if isinstance(one.transform, Corruption)})
    return {
        "corruptions": list(dict.fromkeys(one.name for one in corrupted)),
        "severities": severities or list(SEVERITIES),
        "ood": [one.name for one in conditions if one not in corrupted],
        "shift_records": next((one.records for one in conditions if not one.unseen), None),
    }


def _name(one: SignalTransform, registry: Registry[Any]) -> str:
    """The name in the registry, or that of the class, with the options that are not the defaults."""
    name = registry.name_of(type(one))
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(one) if dataclasses.is_dataclass(one) else ()
    chosen = [field for field in fields if field.compare and getattr(one, field.name) != field.default]
    options = [f"{field.name}={getattr(one, field.name)}" for field in chosen if field.name != "severity"]
    return " ".join([type(one).__name__ if ":" in name else name, *options])
