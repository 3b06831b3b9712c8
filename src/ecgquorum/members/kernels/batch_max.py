"""A maximum over the batch, as a module, so that ranks which share a batch can take it over all of it."""

from torch import Tensor, nn


class BatchMax(nn.Module):
    """(batch, ...) -> (...): the elementwise maximum over the batch."""

    batch_reduction = "max"  # read by `ecgquorum.parallel.batch_layers`

    def forward(self, x: Tensor) -> Tensor:
        """(batch, ...) -> (...)."""
        return x.amax(dim=0)
