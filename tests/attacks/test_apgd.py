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


def test_the_step_is_halved_until_the_top_of_a_narrow_hill_is_found():
    """The loss of the true class is highest at 0.3 epsilon; steps of 2 epsilon jump over it, halved ones do not."""

    def model(x):
        hill = 5 - 40 * (x[:, 0, 0] - 0.3).abs()
        return torch.stack([-hill, hill], dim=1)

    x = torch.zeros(8, 1, 1)
    moved = APGD(1.0, n_steps=50)(model, x, torch.zeros(8, dtype=torch.long))
    assert (moved - 0.3).abs().max() < 0.02
