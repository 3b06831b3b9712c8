"""The contract of members: what the rest of the package asks of a network.

A member is any `nn.Module` from (batch, lead, time) to logits (batch, class). Two more things are read from it where a
strategy needs them, without a base class:
- its *features*, (batch, feature): the output of its method `embed(x)`; without one, the input of the `nn.Linear` that
  runs last;
- the outputs of its batch-norm layers, by forward hooks.
A network whose layers change their length with the content of a batch (as `compact` does where it crops padding) has an
attribute `crop_padding`, which is False while outputs of layers are compared.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ecgquorum.errors import MemberError
from ecgquorum.members.kernels.freezing import freeze

_LOCK = threading.RLock()
"""Held while a member is changed to record its features, so that several threads can use one ensemble."""


def embed(member: nn.Module, x: Tensor) -> Tensor:
    """Return the member's features of x, (batch, feature)."""
    own = getattr(member, "embed", None)
    if callable(own):
        features: Tensor = own(x)
        return features
    return forward_with_features(member, x)[1]


def forward_with_features(member: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the member's logits (batch, class) and features (batch, feature), in one pass where that is possible.

    A module that wraps another one may have a method of this name itself.
    """
    wrapper: Any = getattr(member, "forward_with_features", None)
    if callable(wrapper):
        both: tuple[Tensor, Tensor] = wrapper(x)
        return both
    own = getattr(member, "embed", None)
    if callable(own):
        with _LOCK, _record_embed(member) as embedded:
            logits: Tensor = member(x)
        # a forward pass that does not call `embed` needs another one
        return logits, (embedded[-1] if embedded else own(x)).flatten(1)
    with _LOCK, _record_linear(member) as recorded:
        logits = member(x)
    if recorded:
        return logits, recorded[-1][1].flatten(1)
    raise MemberError(
        f"{type(member).__name__} has no features to read: give it a method embed(x) -> (batch, feature), or let it "
        "end in an nn.Linear"
    )


@contextmanager
def _record_embed(member: nn.Module) -> Iterator[list[Tensor]]:
    """Record what `member.embed` returns while the block runs."""
    recorded: list[Tensor] = []
    own: Any = member.embed
    thread = threading.get_ident()

    def embed_and_record(x: Tensor) -> Tensor:
        features: Tensor = own(x)
        if threading.get_ident() == thread:
            recorded.append(features)
        return features

    before = dict(member.__dict__)
    member.__dict__["embed"] = embed_and_record
    try:
        yield recorded
    finally:
        del member.__dict__["embed"]
        if "embed" in before:  # set on this instance, not by its class
            member.__dict__["embed"] = before["embed"]


def last_linear(member: nn.Module, x: Tensor) -> nn.Linear:
    """Return the `nn.Linear` of the member that runs last; x is any batch that it takes."""
    with freeze(member), torch.no_grad(), _record_linear(member) as recorded:
        member(x)
    if not recorded:
        raise MemberError(f"{type(member).__name__} has no nn.Linear; its last layer cannot be fitted again")
    return recorded[-1][0]


@contextmanager
def _record_linear(member: nn.Module) -> Iterator[list[tuple[nn.Linear, Tensor]]]:
    """Record all linear layers and their inputs, in the order in which they run, while the block runs."""
    recorded: list[tuple[nn.Linear, Tensor]] = []
    thread = threading.get_ident()

    def record(layer: nn.Linear, inputs: tuple[Tensor, ...]) -> None:
        if threading.get_ident() == thread:
            recorded.append((layer, inputs[0]))

    handles = [m.register_forward_pre_hook(record) for m in member.modules() if isinstance(m, nn.Linear)]
    try:
        yield recorded
    finally:
        for handle in handles:
            handle.remove()


def norm_layers(member: nn.Module) -> list[nn.Module]:
    """Return the member's batch-norm layers, in the order in which they were built."""
    return [module for module in member.modules() if isinstance(module, _BatchNorm)]


class _LayerReached(Exception):  # noqa: N818 (it ends a forward pass, nothing went wrong)
    """Ends a forward pass at a layer whose output is all that is wanted."""


def norm_output(member: nn.Module, x: Tensor, layer: int) -> Tensor:
    """Return the output of the batch-norm layer with number `layer`; what comes after it is not computed."""
    layers = norm_layers(member)
    if not layers:
        raise MemberError(f"{type(member).__name__} has no batch-norm layer; DVERGE compares activations there")
    recorded: list[Tensor] = []

    def record(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        recorded.append(output)
        raise _LayerReached

    handle = layers[layer].register_forward_hook(record)
    try:
        with keep_padding(member):
            member(x)
    except _LayerReached:
        pass
    finally:
        handle.remove()
    if not recorded:
        raise MemberError(f"{type(member).__name__}: batch-norm layer {layer} does not run in the forward pass")
    return recorded[0]


@contextmanager
def keep_padding(member: nn.Module) -> Iterator[None]:
    """Keep members from cropping padding while the block runs, so that activations of two batches have one shape."""
    cropping = [m for m in member.modules() if getattr(m, "crop_padding", False) is True]
    for module in cropping:
        module.crop_padding = False  # type: ignore[assignment]
    try:
        yield
    finally:
        for module in cropping:
            module.crop_padding = True  # type: ignore[assignment]


def count_features(member: nn.Module, x: Tensor) -> int:
    """Return how many features the member has; x is any batch that it takes."""
    was_training = member.training
    member.eval()
    with torch.no_grad():
        n_features = embed(member, x).shape[1]
    member.train(was_training)
    return n_features


def downsample_mask(mask: Tensor, step: int) -> Tensor:
    """Return the mask at every `step`-th position: 1 where any of the next `step` samples is 1."""
    return mask if step == 1 else nn.functional.max_pool1d(mask, step, ceil_mode=True)


def valid_span(x: Tensor) -> Tensor:
    """Return (batch, 1, time) of 0 and 1: 1 from the first to the last sample that is not zero on some lead.

    Padding is exactly zero, so this finds the recording inside its window. An all-zero input is all valid.
    """
    with torch.no_grad():
        touched = (x != 0).any(dim=1, keepdim=True).to(torch.uint8)
        first, last = touched.argmax(dim=2, keepdim=True), x.shape[2] - 1 - touched.flip(2).argmax(dim=2, keepdim=True)
        place = torch.arange(x.shape[2], device=x.device)
        return ((place >= first) & (place <= last)).to(x.dtype)  # of an empty one: from 0 to the last sample
