"""Members by name, and how they are built."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from ecgquorum.errors import MemberError
from ecgquorum.registry import Registry

MemberFactory = Callable[..., nn.Module]
"""A class of networks, or a function that builds one."""

MEMBERS: Registry[MemberFactory] = Registry(
    "member",
    {
        "compact": "ecgquorum.members.compact:CompactMember",
        "dilated": "ecgquorum.members.dilated:DilatedMember",
    },
)
"""Every network that a recipe can name; other packages add theirs as entry points `ecgquorum.members`."""

_ALIASES = {
    "n_leads": ("n_leads", "n_chans", "n_channels", "in_channels"),
    "n_classes": ("n_classes", "n_outputs", "num_classes"),
    "rate_hz": ("rate_hz", "sfreq", "sampling_rate"),
    "index": ("index",),
}
"""What a factory may ask for, and the parameter names by which it may do so."""


def build_member(
    member: str | MemberFactory,
    *,
    n_leads: int,
    n_classes: int,
    rate_hz: float,
    index: int = 0,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Build a network; its factory gets those of n_leads, n_classes, rate_hz and index that it has parameters for.

    member:  a registered name, `package.module:Name`, a class or a function
    seed:    for the initial weights; None: PyTorch's global generator decides
    options: further keyword arguments
    """
    factory = MEMBERS.get(member) if isinstance(member, str) else member
    known = {"n_leads": n_leads, "n_classes": n_classes, "rate_hz": rate_hz, "index": index}
    arguments = _arguments(factory, known, dict(options or {}))
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        network = factory(**arguments)
    if not isinstance(network, nn.Module):
        raise MemberError(f"{_name(factory)}: expected it to build an nn.Module, found {type(network).__name__}")
    return network


def check_options(member: str | MemberFactory, options: Mapping[str, Any]) -> None:
    """Raise a `MemberError` if the member's factory does not take these keyword arguments."""
    factory = MEMBERS.get(member) if isinstance(member, str) else member
    known = {"n_leads": 1, "n_classes": 2, "rate_hz": 100.0, "index": 0}
    _arguments(factory, known, dict(options))


SIMPLE_TYPES = (bool, int, float, str)
"""Types of options that a recipe can hold."""


def default_options(member: str | MemberFactory) -> dict[str, Any]:
    """Return the defaults of those options of a member's factory that a recipe can hold."""
    factory = MEMBERS.get(member) if isinstance(member, str) else member
    taken = {name for names in _ALIASES.values() for name in names}
    parameters = [p for p in inspect.signature(factory).parameters.values() if p.name not in taken]
    return {p.name: p.default for p in parameters if p.default is not p.empty and isinstance(p.default, SIMPLE_TYPES)}


def _arguments(factory: MemberFactory, known: Mapping[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(factory).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [name for name in options if name not in parameters and not takes_all]
    if unknown:
        taken = {name for names in _ALIASES.values() for name in names}
        others = ", ".join(name for name in parameters if name not in taken) or "none"
        raise MemberError(f"member {_name(factory)}: unknown option {unknown[0]}; known: {others}")
    arguments = {
        name: known[meaning] for meaning, names in _ALIASES.items() for name in names if name in parameters
    } | options
    missing = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and name not in arguments
    ]
    if missing:
        raise MemberError(
            f"member {_name(factory)}: its parameter {missing[0]} has no value; give it a default, or name it one of "
            f"{', '.join(name for names in _ALIASES.values() for name in names)}"
        )
    return arguments


def _name(factory: MemberFactory) -> str:
    return getattr(factory, "__qualname__", type(factory).__name__)
