"""The exponential moving average of a network's weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """a <- d a + (1 - d) w after every step, over parameters and the running statistics of batch norm.

    d = min(decay, (1 + step) / (10 + step)): the first weights, which are random, are soon forgotten.

    weights: the average so far, to continue after a checkpoint
    step:    how many steps it has seen
    """

    def __init__(self, network: nn.Module, decay: float, weights: Mapping[str, Tensor], step: int) -> None:
        self._network, self._decay, self._step = network, decay, step
        self._average = {
            name: weights.get(name, tensor).detach().to(tensor.device).clone()
            for name, tensor in network.state_dict().items()
        }

    @torch.no_grad()
    def update(self) -> None:
        """Take the network's present weights into the average."""
        self._step += 1
        decay = min(self._decay, (1 + self._step) / (10 + self._step))
        for name, tensor in self._network.state_dict().items():
            if tensor.is_floating_point():
                self._average[name].lerp_(tensor, 1 - decay)
            else:  # a count
                self._average[name].copy_(tensor)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Give the network the average while the block runs."""
        present = {name: tensor.clone() for name, tensor in self._network.state_dict().items()}
        self._network.load_state_dict(self._average)
        try:
            yield
        finally:
            self._network.load_state_dict(present)
