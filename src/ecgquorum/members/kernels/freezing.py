"""Freeze networks for inference and attacks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def freeze(*models: Any) -> Iterator[None]:
    """Put models in evaluation mode and stop gradients of their parameters while the block runs; then restore both.

    Anything that is not an `nn.Module` is ignored.
    """
    parameters = [p for model in models if isinstance(model, nn.Module) for p in model.parameters()]
    wanted = [parameter.requires_grad for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.requires_grad_(False)
        with evaluation_mode(*models), torch.enable_grad():
            yield
    finally:
        for parameter, want in zip(parameters, wanted, strict=True):
            parameter.requires_grad_(want)


@contextmanager
def evaluation_mode(*models: Any) -> Iterator[None]:
    """Put models in evaluation mode while the block runs; parameters keep their gradients."""
    modules = [part for model in models if isinstance(model, nn.Module) for part in model.modules()]
    modes = [module.training for module in modules]
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
