"""A member: any `nn.Module` from (batch, lead, time) to logits. It imports nothing of ecgquorum."""

import torch
from torch import Tensor, nn


class PlainNet(nn.Module):
    """Two strided convolutions, the mean over time, a linear layer.

    config: keyword arguments that build the network again; they are stored in a bundle's card
    """

    def __init__(self, n_leads: int, n_classes: int, *, channels: int = 16) -> None:
        super().__init__()
        self.config = {"channels": channels}
        self.body = nn.Sequential(
            nn.Conv1d(n_leads, channels, 31, stride=6),
            nn.BatchNorm1d(channels),
            nn.ReLU(),
            nn.Conv1d(channels, 2 * channels, 15, stride=4),
            nn.BatchNorm1d(2 * channels),
            nn.ReLU(),
        )
        self.head = nn.Linear(2 * channels, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, class)."""
        logits: Tensor = self.head(torch.mean(self.body(x / 1000), dim=2))
        return logits
