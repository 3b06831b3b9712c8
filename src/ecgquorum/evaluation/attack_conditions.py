"""Attacks of an evaluation: an attack object, the model it is crafted on, and for how many recordings."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ecgquorum.attacks import ATTACKS, Attack, build_attack
from ecgquorum.errors import AttackError
from ecgquorum.evaluation.conditions import ENSEMBLE, MIXED, RESERVED_NAMES, Condition
from ecgquorum.evaluation.fingerprint import describe_value
from ecgquorum.evaluation.options import EvaluationOptions
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes.study import EPSILONS


@dataclass(frozen=True)
class AttackCondition:
    """An attack, and what it is crafted on.

    target:  "member 0", "member 1", ..., or "ensemble"; "": member 0 as in the paper, or the ensemble for attacks that
             need all members
    records: craft it for at most so many recordings, drawn at random; None: for all
    name:    in tables; "": the attack's name in the registry, or its class
    """

    attack: Attack
    target: str = ""
    records: int | None = None
    name: str = ""

    def __post_init__(self) -> None:
        kind = ATTACKS.name_of(type(self.attack))
        if not self.name:
            object.__setattr__(self, "name", type(self.attack).__name__ if ":" in kind else kind)
        if not self.target:
            object.__setattr__(self, "target", type(self.attack).default_target)
        if self.target != ENSEMBLE and not re.fullmatch(r"member \d+", self.target):
            raise AttackError(f'{self.name}: the target must be "{ENSEMBLE}" or "member 0", not {self.target!r}')
        if self.name in RESERVED_NAMES or self.name.startswith(MIXED):
            raise AttackError(f"an attack cannot be called {self.name!r}, which tables use for something else")
        if isinstance(self.attack.epsilon, torch.Tensor):
            raise AttackError(f"{self.name}: an attack to be evaluated needs one epsilon for all recordings")
        if self.records is not None and self.records < 1:
            raise AttackError(f"{self.name}: records must be at least 1, not {self.records}")

    @property
    def epsilon(self) -> float:
        """The strength, in the units of the model's input."""
        return float(self.attack.epsilon)

    @property
    def condition(self) -> Condition:
        """The condition as a scorecard keeps it."""
        return Condition(self.name, self.target, self.epsilon, self.records)

    @property
    def member(self) -> int | None:
        """The number of the member it is crafted on; None for the ensemble."""
        return None if self.target == ENSEMBLE else int(self.target.removeprefix("member "))


def make_conditions(attacks: Iterable[Attack | AttackCondition | str], spec: InputSpec) -> list[AttackCondition]:
    """Wrap attacks, in tables from weak to strong; a name stands for that attack at each of the paper's strengths.

    A name may give the target: "pgd@ensemble", "pgd@1".
    """
    made: list[AttackCondition] = []
    for one in attacks:
        if isinstance(one, str):
            kind, _, target = one.partition("@")
            target = f"member {target}" if target.isdigit() else target
            made += [AttackCondition(build_attack(kind, e, {}, spec), target) for e in EPSILONS[spec.scaling]]
        else:
            made.append(one if isinstance(one, AttackCondition) else AttackCondition(one))
    families = list(dict.fromkeys((one.name, one.target) for one in made))
    made.sort(key=lambda one: (families.index((one.name, one.target)), one.epsilon))
    for one in made:
        if sum(other.condition == one.condition for other in made) > 1:
            raise AttackError(
                f"two attacks are called {one.condition}; give one another name: AttackCondition(attack, name=...)"
            )
    return made


def describe_evaluation(
    conditions: Sequence[AttackCondition], options: EvaluationOptions, spec: InputSpec
) -> dict[str, Any]:
    """Describe an evaluation in plain values, as an evaluation recipe does."""
    attacks: dict[tuple[str, str], dict[str, Any]] = {}
    for one in conditions:
        kind = ATTACKS.name_of(type(one.attack))
        described: dict[str, Any] = {
            "kind": kind,
            "target": one.target,
            "name": one.name,
            "epsilons": [one.epsilon],
            "records": one.records,
            "options": _describe_options(one.attack, kind, spec),
        }
        known = attacks.setdefault((one.name, one.target), described)
        if known is not described:
            if known | {"epsilons": None} != described | {"epsilons": None}:
                raise AttackError(
                    f"two attacks with different options are called {one.name} on {one.target}; give one another name: "
                    "AttackCondition(attack, name=...)"
                )
            known["epsilons"].append(one.epsilon)
    return {
        "part": options.part,
        "epsilons": sorted({one.epsilon for one in conditions}),
        "attacks": list(attacks.values()),
        "normalise": options.normalise,
        "masking_records": options.masking_records,
        "seed": options.seed,
    }


def _describe_options(attack: Attack, kind: str, spec: InputSpec) -> dict[str, Any]:
    """The fields that differ from the attack's defaults for this input."""
    found = {field.name: getattr(attack, field.name) for field in dataclasses.fields(attack)}
    usual = build_attack(kind, float(attack.epsilon), {}, spec) if kind in ATTACKS else None
    return {
        name: value if isinstance(value, bool | int | float | str) else repr(value)
        for name, value in found.items()
        if name != "epsilon"
        and not (usual is not None and describe_value(value) == describe_value(getattr(usual, name)))
    }
