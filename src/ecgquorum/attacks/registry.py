"""Attacks by name."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ecgquorum.attacks.attack import Attack
from ecgquorum.attacks.sap import CPSC_KERNELS, SAP
from ecgquorum.errors import AttackError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.registry import Registry

ATTACKS: Registry[type[Attack]] = Registry(
    "attack",
    {
        "pgd": "ecgquorum.attacks.pgd:PGD",
        "sap": "ecgquorum.attacks.sap:SAP",
        "apgd": "ecgquorum.attacks.apgd:APGD",
        "square": "ecgquorum.attacks.square:Square",
        "confident": "ecgquorum.attacks.confident_pgd:ConfidentPGD",
        "worst": "ecgquorum.attacks.worst_case:WorstCase",
    },
)
"""Every attack that a recipe or the command line can name; other packages add theirs as `ecgquorum.attacks`."""

_NOT_OPTIONS = {"epsilon", "attacks", "targets", "start"}


def build_attack(name: str, epsilon: float, options: Mapping[str, Any], spec: InputSpec) -> Attack:
    """Build an attack by name with options from a recipe, for inputs as `spec` says.

    SAP gets the paper's kernels for the input's scaling, unless the options name others.
    """
    kind = ATTACKS.get(name)
    known = {field.name: field for field in dataclasses.fields(kind) if field.name not in _NOT_OPTIONS}
    unknown = [option for option in options if option not in known]
    if unknown:
        raise AttackError(f"attack {name}: unknown option {unknown[0]}; known: {', '.join(known) or 'none'}")
    hints = get_type_hints(kind)
    for option, value in options.items():
        if not _fits(value, known[option].default, hints[option]):
            expected = " or ".join(map(repr, get_args(hints[option]))) or f"a value such as {known[option].default!r}"
            raise AttackError(f"attack {name}: {option}: expected {expected}, found {value!r}")
    if kind is SAP and spec.scaling == "unit":
        options = {"sizes": CPSC_KERNELS[0], "widths": CPSC_KERNELS[1], **options}
    return kind(epsilon, **options)


def _fits(value: Any, default: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int | float):
        return isinstance(value, int if isinstance(default, int) else (int, float)) and 0 < value < math.inf
    return default is dataclasses.MISSING or isinstance(value, type(default))
