"""Gradient masking is detected where it exists, and only there."""

import pytest
import torch

from ecgquorum import Cohort, load_ensemble
from ecgquorum.evaluation import EvaluationOptions, evaluate, gradient_masking
from ecgquorum.evaluation.gradient_masking import STEPS, check_gradient_masking
from ecgquorum.members import CompactMember
from ecgquorum.report.findings import masking_findings

pytestmark = pytest.mark.long

CHECKED = EvaluationOptions(masking_records=16, masking_epsilon=300.0)


@pytest.fixture(autouse=True)
def all_steps(monkeypatch):
    monkeypatch.setattr(gradient_masking, "STEPS", STEPS)


class Rounding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x / 20) * 20

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(gradient)


class Hiding(CompactMember):
    """A member that rounds its input: not more robust, but its gradient is zero."""

    def forward(self, x):
        return super().forward(Rounding.apply(x))


def hide_gradients(ensemble):
    for member in ensemble.members:
        member.__class__ = Hiding
    return ensemble


def test_without_masking_the_loss_rises_and_knowledge_helps(tiny_study):
    ensemble, cohort = load_ensemble(tiny_study / "runs/baseline"), Cohort(tiny_study / "cohort")
    batch = cohort.batch(cohort.part("test"), ensemble.input)
    values = {(one.metric, one.detail): one.estimate for one in check_gradient_masking(ensemble, batch, 300.0, 0)}
    losses = [values["loss", f"{steps} steps"].value for steps in STEPS]
    assert losses[-1] > losses[0] and losses[3] > losses[0]
    assert values["zero_gradients", ""].value == 0
    assert values["error_rate", "white box"].value >= values["error_rate", "black box"].value
    card = evaluate(ensemble, cohort, options=CHECKED)
    assert masking_findings(card, "baseline") == []


def test_rounding_the_input_is_detected_as_masking(tiny_study):
    ensemble, cohort = load_ensemble(tiny_study / "runs/baseline"), Cohort(tiny_study / "cohort")
    card = evaluate(hide_gradients(ensemble), cohort, options=CHECKED)
    found = masking_findings(card, "baseline")
    assert "100 % of recordings have no gradient" in found
    assert "the loss does not rise with the steps" in found
    assert "black box makes more errors than transfer" in found
