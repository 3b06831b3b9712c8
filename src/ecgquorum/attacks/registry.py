"""From a recipe to an attack."""

import dataclasses
import math
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ecgquorum.attacks.apgd import APGD
from ecgquorum.attacks.attack import Attack
from ecgquorum.attacks.confident_pgd import ConfidentPGD
from ecgquorum.attacks.pgd import PGD
from ecgquorum.attacks.sap import CPSC_KERNELS, PHYSIONET_KERNELS, SAP
from ecgquorum.attacks.square import Square
from ecgquorum.attacks.worst_case import WorstCase
from ecgquorum.errors import AttackError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import AttackRecipe

ATTACKS: dict[str, type[Attack]] = {
    "pgd": PGD,
    "sap": SAP,
    "apgd": APGD,
    "square": Square,
    "quiet": ConfidentPGD,
    "worst": WorstCase,
}
"""Every attack that a recipe can name."""

_NOT_FOR_RECIPES = {"epsilon", "attacks", "targets", "start"}


def build_attack(recipe: AttackRecipe, epsilon: float, spec: InputSpec) -> Attack:
    """The recipe's attack at the strength `epsilon`, on inputs as `spec` says: SAP has kernels for each scaling."""
    kind = ATTACKS[recipe.kind]
    known = {field.name: field for field in dataclasses.fields(kind) if field.name not in _NOT_FOR_RECIPES}
    unknown = [name for name in recipe.options if name not in known]
    if unknown:
        raise AttackError(
            f"evaluation.attacks: {recipe.name}: unknown option {unknown[0]}; known: {', '.join(known) or 'none'}"
        )
    hints = get_type_hints(kind)
    for name, value in recipe.options.items():
        if not _fits(value, known[name].default, hints[name]):
            expected = " or ".join(map(repr, get_args(hints[name]))) or f"a value such as {known[name].default!r}"
            raise AttackError(f"evaluation.attacks: {recipe.name}: {name}: expected {expected}, found {value!r}")
    options = dict(recipe.options)
    if kind is SAP:
        sizes, widths = PHYSIONET_KERNELS if spec.scaling == "microvolt" else CPSC_KERNELS
        options = {"sizes": sizes, "widths": widths} | options
    return kind(epsilon, **options)


def _fits(value: Any, default: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int | float):
        return isinstance(value, int if isinstance(default, int) else (int, float)) and 0 < value < math.inf
    return isinstance(value, type(default))
