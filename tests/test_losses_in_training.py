"""What the decorrelation losses do to a member in training: the paper's can be met by encoding the sign of recordings.

Recordings are three noisy cues for one of two classes and their sign, which says nothing about the class. The first
member does not see the sign; the second is trained beside it.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ecgquorum.ensemble.diversity import augmentation_share, class_residual, whitened_r2
from ecgquorum.losses import conditional_decorrelation, decorrelation

N_CUES, N_FEATURES, N_PROJECTED = 3, 8, 4


def draw(n_records, generator):
    """Cues and sign (record, 4), classes (record,)."""
    y = torch.randint(2, (n_records,), generator=generator)
    cues = 2 * y[:, None] - 1 + 2 * torch.randn(n_records, N_CUES, generator=generator, dtype=torch.float64)
    sign = 2 * torch.randint(2, (n_records, 1), generator=generator) - 1
    return torch.cat([cues, sign], dim=1), y


class Member(nn.Module):
    def __init__(self, sees_sign):
        super().__init__()
        self.register_buffer("seen", torch.tensor([1.0] * N_CUES + [float(sees_sign)]))
        self.embed = nn.Sequential(nn.Linear(N_CUES + 1, 16), nn.Tanh(), nn.Linear(16, N_FEATURES))
        self.head = nn.Linear(N_FEATURES, 2)
        self.double()

    def forward(self, x):
        z = self.embed(x * self.seen)
        return self.head(z), z


def logit(logits):
    return logits[:, 1:] - logits[:, :1]


def paper(ours, theirs, y, generator):
    return decorrelation(ours[1], theirs[1], generator=generator, n_projected=N_PROJECTED)


def repaired(ours, theirs, y, generator):
    return conditional_decorrelation(logit(ours[0]), logit(theirs[0]), y, generator=generator)


def train(first=None, loss=None, weight=0.2, seed=0):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    member = Member(sees_sign=first is not None)
    optimiser = torch.optim.Adam(member.parameters(), lr=1e-2)
    for _ in range(400):
        x, y = draw(128, generator)
        ours = member(x)
        total = F.cross_entropy(ours[0], y)
        if loss:
            with torch.no_grad():
                theirs = first(x)
            total = total + weight * loss(ours, theirs, y, generator)
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
    return member


@torch.no_grad()
def measure(member, first):
    x, y = draw(4000, torch.Generator().manual_seed(99))
    ours, theirs, flipped = member(x), first(x), member(x * torch.tensor([1.0] * N_CUES + [-1.0]))
    residuals = [class_residual(logit(side[0]).numpy(), y.numpy()) for side in (ours, theirs)]
    draws = [paper(ours, theirs, y, torch.Generator().manual_seed(seed)).item() for seed in range(16)]
    return {
        "accuracy": (ours[0].argmax(dim=1) == y).double().mean().item(),
        "paper's loss": sum(draws) / len(draws),
        "share of the sign": augmentation_share(torch.stack([ours[1], flipped[1]]).numpy()),
        "R2 of logits within classes": whitened_r2(*residuals, n_means=2),
    }


@pytest.fixture(scope="module")
def measured():
    first = train()
    return {
        name: measure(train(first, loss, seed=1), first)
        for name, loss in (("none", None), ("paper", paper), ("repaired", repaired))
    }


def test_the_papers_loss_is_met_by_encoding_the_sign(measured):
    before, after = measured["none"], measured["paper"]
    assert before["share of the sign"] < 0.1
    assert after["paper's loss"] < 0.3 * before["paper's loss"]
    assert after["share of the sign"] > 0.6
    assert before["R2 of logits within classes"] > 0.85 and after["R2 of logits within classes"] > 0.65


def test_the_repaired_loss_is_not(measured):
    before, after = measured["none"], measured["repaired"]
    assert after["R2 of logits within classes"] < 0.6 * before["R2 of logits within classes"]
    assert after["share of the sign"] < 0.25
    assert after["accuracy"] > before["accuracy"] - 0.04
