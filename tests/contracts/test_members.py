"""What every member must obey, whatever its network."""

import copy

import pytest
import torch
from ecgquorum.members.member import Block, Member
from torch import nn

from ecgquorum.members import MEMBERS, freeze
from ecgquorum.recipes import MemberRecipe, PartitionRecipe, Recipe
from ecgquorum.training.jobs import build_recipe_member

KINDS = {"compact": 0.125, "dilated": 0.05}
"""Every kind of member and a width at which it is quick."""


def member(kind, *, n_leads=2, bands="all", seed=0, index=0):
    partition = PartitionRecipe(bands=(bands,))
    recipe = Recipe(
        name="t", seed=seed, strategy="part", member=MemberRecipe(kind=kind, width=KINDS[kind]), partition=partition
    )
    return build_recipe_member(recipe, index, n_leads=n_leads, n_classes=3, rate_hz=300.0).eval()


def signals(n_samples=1200, n_leads=2, n_padding=100):
    x = torch.randn(4, n_leads, n_samples, generator=torch.Generator().manual_seed(1)) * 300
    x[..., :n_padding] = x[..., n_samples - n_padding :] = 0
    return x


def answer_and_gradient(network, x):
    x = x.clone().requires_grad_()
    logits = network(x)
    return logits, torch.autograd.grad((logits * torch.arange(1, 4, dtype=x.dtype)).sum(), x)[0]


def test_the_table_is_complete():
    assert KINDS.keys() == MEMBERS.keys()
    concrete = {cls for cls in Member.__subclasses__() if cls.__module__.startswith("ecgquorum")}
    assert set(MEMBERS.values()) == concrete


@pytest.mark.parametrize("bands", ["all", "rings:even", ((0.0, 20.0), (40.0, 50.0))])
@pytest.mark.parametrize("kind", KINDS)
class TestEveryMember:
    @pytest.mark.parametrize("n_samples", [1200, 1201, 1207, 997])
    def test_shapes(self, kind, bands, n_samples):
        network = member(kind, bands=bands)
        x = signals(n_samples)
        assert network(x).shape == (4, 3)
        assert network.embed(x).shape == (4, network.n_features)

    def test_logits_are_the_head_of_the_features(self, kind, bands):
        network, x = member(kind, bands=bands), signals()
        torch.testing.assert_close(network.head(network.embed(x)), network(x))

    def test_stages_are_what_the_batch_norms_gave(self, kind, bands):
        network, x = member(kind, bands=bands), signals()
        for number, block in enumerate(network.blocks):
            seen = []
            norm = [part for part in block.modules() if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d)][-1]
            handle = norm.register_forward_hook(lambda module, inputs, output, seen=seen: seen.append(output.clone()))
            network(x)
            handle.remove()
            assert isinstance(block, Block)
            torch.testing.assert_close(network.stage(x, number), seen[0])

    @pytest.mark.parametrize("n_samples", [1200, 1201, 1207, 997])
    def test_folded_it_says_the_same(self, kind, bands, n_samples):
        """Batch norms are folded while nothing is trained: exactly the same in float64, all but so in float32."""
        network = member(kind, bands=bands)
        torch.manual_seed(0)  # the same statistics in whatever order tests run
        for norm in network.modules():
            if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
                nn.init.uniform_(norm.running_mean, -0.2, 0.2)
                nn.init.uniform_(norm.running_var, 0.5, 2)
                nn.init.uniform_(norm.weight, -0.5, 1.5)
        for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
            network.to(dtype)
            x = signals(n_samples).to(dtype)
            plain, plain_gradient = answer_and_gradient(network, x)
            with freeze(network):
                folded, folded_gradient = answer_and_gradient(network, x)
                stages = [network.stage(x, block) for block in range(len(network.blocks))]
            torch.testing.assert_close(folded, plain, rtol=tolerance, atol=tolerance)
            for block, stage in enumerate(stages):
                torch.testing.assert_close(stage, network.stage(x, block), rtol=tolerance, atol=tolerance * 100)
            if dtype == torch.float64:
                torch.testing.assert_close(folded_gradient, plain_gradient, rtol=1e-7, atol=1e-12)
            else:
                assert (folded_gradient.sign() == plain_gradient.sign()).double().mean() >= 0.99
            with torch.inference_mode():
                torch.testing.assert_close(network(x), plain.detach(), rtol=tolerance, atol=tolerance)

    def test_what_is_folded_follows_the_weights(self, kind, bands):
        network, x = member(kind, bands=bands), signals()

        def same():
            with torch.inference_mode():
                folded = network(x)
            torch.testing.assert_close(folded, network(x).detach(), rtol=1e-4, atol=1e-5)
            return folded

        before = same()
        optimiser = torch.optim.SGD(network.parameters(), lr=0.05)
        network.train()
        network(x).square().sum().backward()
        optimiser.step()
        network.eval()
        after = same()
        assert not torch.allclose(before, after)
        twin = copy.deepcopy(network)
        network.load_state_dict(member(kind, bands=bands, seed=5).state_dict())
        assert not torch.allclose(same(), after)
        with torch.inference_mode():
            torch.testing.assert_close(twin(x), after)
        network.double().float()
        same()

    def test_records_do_not_see_each_other(self, kind, bands):
        network, x = member(kind, bands=bands), signals()
        torch.testing.assert_close(network(x)[2:3], network(x[2:3]), rtol=1e-4, atol=1e-5)

    def test_gradients_reach_the_input_and_every_parameter(self, kind, bands):
        network, x = member(kind, bands=bands).train(), signals().requires_grad_()
        network(x).logsumexp(dim=1).sum().backward()
        assert torch.isfinite(x.grad).all()
        assert (x.grad[..., 100:-100] != 0).float().mean() > 0.4  # the dilated pools never read every second sample
        for name, parameter in network.named_parameters():
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name

    def test_predicting_before_training_does_no_harm(self, kind, bands):
        network, x = member(kind, bands=bands), signals()
        with torch.inference_mode():
            network(x)
        x = x.clone().requires_grad_()
        network(x).sum().backward()
        assert x.grad is not None

    def test_the_seed_makes_the_weights_and_leaves_the_global_generator_alone(self, kind, bands):
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        states = [member(kind, bands=bands, seed=s, index=i).state_dict() for s, i in ((0, 0), (0, 0), (1, 0), (0, 1))]
        assert torch.equal(before, torch.random.get_rng_state())
        name = "head.weight"
        assert torch.equal(states[0][name], states[1][name])
        assert not torch.equal(states[0][name], states[2][name])
        assert not torch.equal(states[0][name], states[3][name])

    @pytest.mark.parametrize("n_live", [1, 10, 40])
    def test_a_glimpse_of_a_recording_gets_a_finite_answer(self, kind, bands, n_live):
        network = member(kind, bands=bands)
        for start in (0, 7, 601, 1200 - n_live):
            x = torch.zeros(1, 2, 1200)
            x[..., start : start + n_live] = 100.0
            assert torch.isfinite(network(x)).all()

    def test_a_silent_recording_gets_a_finite_answer(self, kind, bands):
        assert torch.isfinite(member(kind, bands=bands)(torch.zeros(2, 2, 1200))).all()
