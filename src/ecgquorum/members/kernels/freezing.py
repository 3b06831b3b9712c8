"""A network as it answers: nothing in it moves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def frozen(*models: Any) -> Iterator[None]:
    """Evaluation mode and no gradients for parameters while the block runs; everything is put back afterwards.

    Batch-norm statistics do not move, since evaluation mode does not touch them. What is no `nn.Module` is left alone.
    """
    modules = [part for model in models if isinstance(model, nn.Module) for part in model.modules()]
    parameters = [p for model in models if isinstance(model, nn.Module) for p in model.parameters()]
    modes = [module.training for module in modules]
    wanted = [parameter.requires_grad for parameter in parameters]
    try:
        for module in modules:
            module.training = False
        for parameter in parameters:
            parameter.requires_grad_(False)
        with torch.enable_grad():
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
        for parameter, want in zip(parameters, wanted, strict=True):
            parameter.requires_grad_(want)
