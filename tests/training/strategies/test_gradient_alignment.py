"""Gradient alignment in training: the right recordings and weight, members left as they were, and any network."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from ecgquorum import TrainingOptions, build_cohort, open_source, train, train_ensemble
from ecgquorum.attacks import PGD
from ecgquorum.cohorts import SplitOptions
from ecgquorum.losses import gradient_alignment, input_gradients
from ecgquorum.members import freeze
from ecgquorum.recipes import parse_recipe
from ecgquorum.strategies import FourierPartition, GradientAlignment, Harden
from ecgquorum.training.phase import BasePhase

from ..conftest import run_backward

SIMULATED = """
name = "simulated"
members = 2
[member]
width = 0.25
dropout = 0.0
pooling = "mean"
dilation = 1
[input]
window_s = 8.0
[training]
epochs = 12
batch_size = 32
"""


class AnyNet(nn.Module):
    """A network without features, with dropout and batch norm, that sees padding."""

    def __init__(self, n_leads, n_classes):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(n_leads, 4, 15, stride=10), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5))
        self.last = nn.Conv1d(4, n_classes, 1)

    def forward(self, x):
        return self.last(self.body(x)).mean(dim=2)


@pytest.fixture
def step_of(context_of, tiny_ensemble):
    """A step of the second member against some earlier ones, and the context."""

    def step_of(strategy, n_earlier=1):
        first, second = list(tiny_ensemble.members)[:2]
        context = context_of([second], strategy, earlier=[[first, second][:n_earlier]], indices=[n_earlier])
        return context.step(0, *next(context.batches(0))), context

    return step_of


@pytest.mark.parametrize("n_earlier", [1, 2])
def test_the_term_is_that_of_the_last_recordings_in_evaluation_mode(step_of, n_earlier):
    strategy = GradientAlignment(weight=0.7, share=0.25)
    step, context = step_of(strategy, n_earlier)
    state = {name: value.clone() for name, value in step.member.state_dict().items()}
    found = strategy.loss_terms(step)
    assert all(torch.equal(value, state[name]) for name, value in step.member.state_dict().items())
    assert all(module.training for module in step.member.modules())
    n_last = round(len(step.batch.label) / 4)
    x, valid, y = (part[-n_last:] for part in (step.batch.signal, step.batch.valid, step.batch.label))
    step.member.eval()
    here = input_gradients(step.member, x, y, valid, create_graph=True)
    earlier = [input_gradients(member.eval(), x, y, valid).detach() for member in step.earlier_members]
    expected = gradient_alignment(here, earlier)
    torch.testing.assert_close(found, 0.7 * expected, rtol=1e-4, atol=1e-6, check_dtype=False)
    parameters = list(step.member.parameters())
    slopes = [torch.autograd.grad(value, parameters, allow_unused=True) for value in (found, 0.7 * expected)]
    for one, other in zip(*slopes, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max() + 1e-3))
    stats = context.stats.pop()
    assert stats["alignment"] == pytest.approx(expected.item(), rel=1e-3, abs=1e-5)
    assert stats["alignment_seconds"] > 0


def test_the_first_member_has_nothing_to_differ_from(step_of):
    strategy = GradientAlignment()
    step, _ = step_of(strategy, 0)
    assert strategy.loss_terms(step) == 0.0
    with pytest.raises(ValueError, match="not their stored features"):
        strategy.loss_terms(replace(step, earlier=[torch.zeros(24, 16)]))
    assert strategy.describe(0) is None and strategy.describe(1) == {"weight": 0.5, "share": 0.25}


def test_earlier_members_get_no_gradient_and_are_not_changed(step_of, tiny_ensemble):
    strategy = GradientAlignment()
    _, context = step_of(strategy)
    first, second = list(tiny_ensemble.members)[:2]
    state = {name: value.clone() for name, value in first.state_dict().items()}
    run_backward(BasePhase(context.options, strategy), context, *next(context.batches(0)))
    assert all(parameter.grad is None for parameter in first.parameters())
    assert all(torch.equal(value, state[name]) for name, value in first.state_dict().items())
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in second.parameters())


def test_padding_does_not_count(context_of):
    """Two members that agree on the recording and differ on the padding, where valid is False."""

    class Sum(nn.Module):
        def __init__(self, sign):
            super().__init__()
            self.weight, self.sign = nn.Parameter(torch.ones(())), sign

        def forward(self, x):
            half = x.shape[2] // 2
            total = self.weight * (x[..., :half].mean(dim=(1, 2)) + 100 * self.sign * x[..., half:].mean(dim=(1, 2)))
            return total[:, None] * torch.tensor([1.0, -1.0, 1.0, -1.0]) / 1e5

    strategy = GradientAlignment(share=1.0)
    context = context_of([Sum(1)], strategy, earlier=[[Sum(-1)]], indices=[1])
    step = context.step(0, *next(context.batches(0)))
    n_samples = step.batch.signal.shape[2]
    first_half = torch.arange(n_samples).expand_as(step.batch.valid) < n_samples // 2
    for valid, alone in ((first_half, True), (torch.ones_like(first_half), False)):
        strategy.loss_terms(replace(step, batch=step.batch._replace(valid=valid)))
        value = context.stats.pop()["alignment"]
        assert value == pytest.approx(1) if alone else value < 0.5


def test_any_network_trains_with_it_alone_and_in_sums(tiny_cohort, tmp_path):
    options = TrainingOptions(epochs=1, batch_size=24, crop_s=4.0)
    for strategy in (GradientAlignment(), GradientAlignment() + FourierPartition() + Harden()):
        ensemble = train(
            AnyNet, tiny_cohort, strategy=strategy, members=2, out=tmp_path / strategy.name, options=options
        )
        assert len(ensemble.members) == 2
        history = (tmp_path / strategy.name / "history.csv").read_text()
        assert "alignment" in history and "nan" not in history


@pytest.mark.slow
def test_attacks_on_the_first_member_mislead_the_second_less(tmp_path):
    """Simulated recordings; the first member is the same, so the attacked recordings are, too."""
    source = open_source("synthetic:physionet2017", records=600, seconds=8.0)
    cohort, _ = build_cohort(source, tmp_path / "cohort", split=SplitOptions(tune_share=0.3))
    found = {}
    for strategy in ("baseline", "gal"):
        recipe = parse_recipe(SIMULATED).with_strategy(strategy)
        ensemble = train_ensemble(recipe, cohort, tmp_path / strategy, device="cpu", store=tmp_path / "store")
        first, second = ensemble.members
        x, valid, y = cohort.batch(cohort.part("tune"), ensemble.input)
        attacked = PGD(50.0)(first, x, y, valid)
        with freeze(first, second):
            accuracy = {
                name: (second(z).argmax(dim=1) == y).double().mean().item()
                for name, z in (("natural", x), ("transfer", attacked), ("direct", PGD(50.0)(second, x, y, valid)))
            }
            slopes = [input_gradients(member, x, y, valid) for member in (second, first)]
        norms = slopes[0].flatten(1).norm(dim=1)
        found[strategy] = accuracy | {"alignment": gradient_alignment(*slopes).item(), "smallest": norms.min().item()}
    plain, gal = found["baseline"], found["gal"]
    assert gal["alignment"] < plain["alignment"] - 0.05
    assert gal["transfer"] > plain["transfer"] + 0.15
    assert gal["natural"] > plain["natural"] - 0.05
    assert gal["smallest"] > 0, "not met by recordings without a gradient"
    assert gal["direct"] < 0.1, "not met by gradients that mislead attacks"
