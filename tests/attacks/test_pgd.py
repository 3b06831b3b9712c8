"""PGD: bounds, padding, an unchanged model, closed forms and foolbox as oracle."""

import foolbox
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ecgquorum.attacks import PGD
from ecgquorum.attacks.attack import random_perturbation
from ecgquorum.cohorts import Batch, make_batch
from ecgquorum.members import CompactMember, freeze


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    signals = [(rng.normal(size=(1, n)) * 300).astype(np.float32) for n in (1800, 900, 1301, 40)]
    return make_batch(signals, 1800, [0, 1, 2, 3])


def state_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("training", [False, True])
def test_the_model_is_left_as_it_was(tiny_ensemble, batch, training):
    tiny_ensemble.train(training)
    tiny_ensemble.members[0].blocks[0].eval()
    modes = [module.training for module in tiny_ensemble.modules()]
    next(tiny_ensemble.parameters()).requires_grad_(False)
    wanted = [p.requires_grad for p in tiny_ensemble.parameters()]
    before, random_state = state_of(tiny_ensemble), torch.random.get_rng_state()
    PGD(10.0, n_steps=3)(tiny_ensemble, batch.signal, batch.label, batch.valid)
    after = tiny_ensemble.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert modes == [module.training for module in tiny_ensemble.modules()]
    assert wanted == [p.requires_grad for p in tiny_ensemble.parameters()]
    assert all(p.grad is None for p in tiny_ensemble.parameters())
    assert torch.equal(random_state, torch.random.get_rng_state())


@pytest.mark.parametrize("epsilon", [0.5, 10.0, 100.0])
def test_changes_stay_inside_epsilon_and_off_the_padding(tiny_ensemble, batch, epsilon):
    attacked = PGD(epsilon)(tiny_ensemble, batch.signal, batch.label, batch.valid)
    change = attacked - batch.signal
    rounding = torch.finfo(torch.float32).eps * batch.signal.abs().max()
    assert change.abs().max() <= epsilon * (1 + 1e-5) + rounding
    assert not attacked[~batch.valid].any()
    assert change[batch.valid].abs().mean() > 0.1 * epsilon


def test_the_loss_rises_and_more_so_with_epsilon(tiny_ensemble, batch):
    tiny_ensemble.eval()
    losses = [
        F.nll_loss(
            tiny_ensemble(PGD(epsilon)(tiny_ensemble, batch.signal, batch.label, batch.valid)), batch.label
        ).item()
        for epsilon in (0.01, 10, 100)
    ]
    clean = F.nll_loss(tiny_ensemble(batch.signal), batch.label).item()
    assert clean <= losses[0] + 1e-4
    assert losses[0] < losses[1] < losses[2]


def test_on_a_linear_classifier_it_reaches_the_corner(batch):
    weight = torch.randn(4, 1800, generator=torch.Generator().manual_seed(0))

    def linear(x):
        return x[:, 0] @ weight.T * 1e-4

    label = torch.zeros(4, dtype=torch.long)
    two = batch._replace(label=label)
    attacked = PGD(5.0)(lambda x: linear(x)[:, :2], two.signal, two.label, two.valid)
    expected = 5.0 * (weight[1] - weight[0]).sign() * two.valid[:, 0]
    torch.testing.assert_close((attacked - two.signal)[:, 0], expected, rtol=1e-4, atol=1e-3)


def test_frozen_gives_gradients_even_where_they_were_off(tiny_ensemble, batch):
    with torch.no_grad():
        attacked = PGD(10.0, n_steps=2)(tiny_ensemble, batch.signal, batch.label, batch.valid)
    assert not torch.equal(attacked, batch.signal)
    with freeze(lambda x: x, tiny_ensemble):
        assert not tiny_ensemble.training


@pytest.mark.parametrize(
    ("norm", "peer_type", "epsilon"),
    [("linf", foolbox.attacks.LinfPGD, 0.03), ("l2", foolbox.attacks.L2PGD, 0.5)],
)
def test_without_a_random_start_it_is_foolboxs_pgd(norm, peer_type, epsilon):
    torch.manual_seed(0)
    model = CompactMember(2, 4, 300.0, width=0.25).eval()
    x = torch.randn(6, 2, 900)
    batch = Batch(x, torch.ones(6, 1, 900, dtype=torch.bool), torch.arange(6) % 4)
    peer = peer_type(abs_stepsize=epsilon / 10, steps=20, random_start=False)
    theirs = peer.run(foolbox.PyTorchModel(model, bounds=(-1e3, 1e3), device="cpu"), x, batch.label, epsilon=epsilon)
    ours = PGD(epsilon, norm=norm)(model, batch.signal, batch.label, batch.valid)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert (ours - x).abs().max() > 0.01


def test_restarts_and_the_best_iterate_are_never_worse(tiny_ensemble, batch):
    def loss(attack):
        attacked = attack(
            tiny_ensemble, batch.signal, batch.label, batch.valid, generator=torch.Generator().manual_seed(0)
        )
        return F.nll_loss(tiny_ensemble.eval()(attacked), batch.label, reduction="none")

    once = loss(PGD(50.0, n_steps=5, random_start=True))
    assert (loss(PGD(50.0, n_steps=5, random_start=True, best=True)) >= once - 1e-5).all()
    assert (loss(PGD(50.0, n_steps=5, random_start=True, restarts=3)) >= once - 1e-5).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_random_start_fills_the_bound_and_leaves_the_padding(norm):
    x, valid = torch.zeros(300, 1, 20), torch.arange(20) < torch.arange(300)[:, None, None] % 10 + 10
    bound = torch.linspace(1, 50, 300)[:, None, None]
    drawn = random_perturbation(x, valid.float(), bound, norm, torch.Generator().manual_seed(0))
    assert (drawn[~valid] == 0).all()
    size = drawn.flatten(1).abs().amax(dim=1) if norm == "linf" else drawn.flatten(1).norm(dim=1)
    shares = size / bound.flatten()
    assert (shares <= 1 + 1e-5).all()
    expected = np.mean([n / (n + 1) for n in range(10, 20)]) if norm == "linf" else 0.5  # the largest of n; uniform
    assert float(shares.mean()) == pytest.approx(expected, abs=0.06)
