"""Hashes of models and attacks, which tell whether attacked recordings can be used again."""

import hashlib
import inspect
import json
from typing import Any

import numpy as np
import torch
from torch import nn

from ecgquorum.attacks import Attack


def hash_module(module: nn.Module) -> str:
    """A hash of what a network computes: its classes and their code, its options, weights and buffers."""
    digest = hashlib.sha256(repr(module).encode())
    for name, one in module.named_modules():
        options = {key: value for key, value in vars(one).items() if _is_option(key, value)}
        digest.update(json.dumps([name, describe_value(dict(sorted(options.items())))]).encode())
    for kind in sorted({type(one) for one in module.modules()}, key=_qualified_name):
        digest.update(json.dumps(describe_value(kind)).encode())
    for name, tensor in [*module.state_dict().items(), *module.named_buffers()]:
        digest.update(f"{name} {tuple(tensor.shape)}".encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def hash_attack(attack: Attack) -> str:
    """A hash of the attack's class and parameters; of a class outside ecgquorum, also of its source code."""
    return hashlib.sha256(json.dumps(describe_value(attack), sort_keys=True).encode()).hexdigest()


def describe_value(value: Any) -> Any:
    """A value as JSON that differs where the value does."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.Tensor | np.ndarray):
        array = np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value)
        return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(value, nn.Module):
        return hash_module(value)
    if isinstance(value, dict):
        return [[describe_value(key), describe_value(one)] for key, one in value.items()]
    if isinstance(value, list | tuple):
        return [describe_value(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(describe_value(one), sort_keys=True) for one in value)
    if inspect.isclass(value) or inspect.isroutine(value):
        return [_qualified_name(value), _source(value)]
    fields = getattr(value, "__dict__", {})
    return [describe_value(type(value)), describe_value(dict(sorted(fields.items())) if fields else repr(value))]


def _is_option(name: str, value: Any) -> bool:
    """Whether an attribute of a network is a plain value that its author chose."""
    if name.startswith("_") or name == "training":
        return False
    return isinstance(value, bool | int | float | str | tuple | list | dict | np.ndarray)


def _qualified_name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', repr(value))}"


def _source(value: Any) -> str:
    """The code of a class or function of the user, which may change while its name stays."""
    if str(getattr(value, "__module__", "")).split(".")[0] in ("ecgquorum", "torch"):
        return ""
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        return ""
