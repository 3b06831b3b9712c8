"""Auto-PGD: the schedule of its step size, and the difference of logits ratio."""

import pytest
import torch

from ecgquorum.attacks import APGD, dlr_loss
from ecgquorum.attacks.apgd import _checkpoints


def test_the_step_size_is_reconsidered_at_the_published_shares():
    assert _checkpoints(100) == {22, 41, 57, 70, 80, 87, 93, 99}


@pytest.mark.parametrize(
    ("logits", "label", "expected"),
    [
        ([4.0, 3.0, 1.0, 0.0], 0, -1 / 3),  # right: the runner-up counts
        ([4.0, 3.0, 1.0, 0.0], 2, 3 / 3),
        ([0.0, 1.0, 3.0, 5.0], 3, -2 / 4),
        ([2.0, 5.0], 0, 3.0),  # two classes: the plain difference
        ([2.0, 5.0], 1, -3.0),
    ],
)
def test_the_difference_of_logits_ratio(logits, label, expected):
    loss = dlr_loss(lambda x: torch.tensor([logits]), torch.tensor([label]))
    assert loss(torch.zeros(1)).item() == pytest.approx(expected)


@pytest.fixture
def visited():
    """Where Auto-PGD goes on a narrow hill: the loss is highest at 0.3 epsilon, steps of 2 epsilon jump over it."""
    places = []

    def model(x):
        places.append(x[:, 0, 0].detach().clone())
        hill = 5 - 40 * (x[:, 0, 0] - 0.3).abs()
        return torch.stack([-hill, hill], dim=1)

    moved = APGD(1.0, n_steps=50)(model, torch.zeros(8, 1, 1), torch.zeros(8, dtype=torch.long))
    return torch.stack(places), moved[:, 0, 0]


def test_the_top_of_a_narrow_hill_is_found(visited):
    _, found = visited
    assert (found - 0.3).abs().max() < 0.02


def test_steps_begin_with_twice_epsilon_and_are_halved(visited):
    """After a halving the attack starts again at the best place, so that it moves by 0.75 of the new step."""
    places, _ = visited
    halvings = []
    for mark in sorted(_checkpoints(50) - {50}):
        best = places[(places[: mark + 1] - 0.3).abs().argmin(dim=0), range(8)]
        inside = places[mark + 1].abs() < 0.999
        halvings += torch.log2(1.5 / (places[mark + 1] - best).abs())[inside].tolist()
    assert len(halvings) > 20 and max(halvings) > 3
    whole = sum(abs(number - round(number)) < 0.01 for number in halvings)
    assert whole >= 0.9 * len(halvings), "a step that still pays is not halved"
