"""Hidden gradients are found; honest ones are left in peace."""

import torch

from ecgquorum import Cohort, load_ensemble
from ecgquorum.evaluation import evaluate
from ecgquorum.evaluation.gradient_masking import STEPS, check_gradient_masking
from ecgquorum.members import CompactMember
from ecgquorum.recipes import EvaluationRecipe
from ecgquorum.report.signs import masking_findings

CHECKED = EvaluationRecipe(epsilons=(100.0, 300.0), attacks=(), masking_records=16)


class Rounding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x / 20) * 20

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(gradient)


class Hiding(CompactMember):
    """A member that rounds its input: as easily fooled as before, but its gradient is zero."""

    def forward(self, x):
        return super().forward(Rounding.apply(x))


def hiding(ensemble):
    for member in ensemble.members:
        member.__class__ = Hiding
    return ensemble


def test_the_loss_rises_and_knowledge_pays(tiny_study):
    ensemble, cohort = load_ensemble(tiny_study / "runs/baseline"), Cohort(tiny_study / "cohort")
    batch = cohort.batch(cohort.part("test"), ensemble.input)
    found = {(one.measure, one.detail): one.estimate for one in check_gradient_masking(ensemble, batch, 300.0, 0)}
    losses = [found["loss", f"{steps} steps"].value for steps in STEPS]
    assert losses[-1] > losses[0] and losses[3] > losses[0]
    assert found["zero_gradients", ""].value == 0
    assert found["error_rate", "white box"].value >= found["error_rate", "black box"].value
    card = evaluate(ensemble, cohort, CHECKED)
    assert masking_findings(card, "baseline") == []


def test_a_member_that_rounds_is_found_out(tiny_study):
    ensemble, cohort = load_ensemble(tiny_study / "runs/baseline"), Cohort(tiny_study / "cohort")
    card = evaluate(hiding(ensemble), cohort, CHECKED)
    signs = masking_findings(card, "baseline")
    assert "100 % of recordings have no gradient" in signs
    assert "the loss does not rise with the steps" in signs
    assert "black box does better than transfer" in signs
