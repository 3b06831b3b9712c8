"""The contract of members, for every built-in network and for networks of other packages."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from ecgquorum.errors import MemberError
from ecgquorum.losses import distill_features
from ecgquorum.members import (
    MEMBERS,
    BandFilter,
    build_member,
    count_features,
    embed,
    forward_with_features,
    freeze,
    norm_layers,
    norm_output,
    parse_bands,
)

KINDS = {"compact": 0.125, "dilated": 0.05}
"""Every built-in member and a width at which it is quick."""


def member(kind, *, n_leads=2, bands="all", seed=0, index=0):
    network = build_member(
        kind, n_leads=n_leads, n_classes=3, rate_hz=300.0, seed=seed + 100 * index, options={"width": KINDS[kind]}
    )
    chosen = parse_bands(bands, 300.0)
    return (network if chosen is None else BandFilter(chosen, 300.0).then(network)).eval()


def signals(n_samples=1200, n_leads=2, n_padding=100):
    x = torch.randn(4, n_leads, n_samples, generator=torch.Generator().manual_seed(1)) * 300
    x[..., :n_padding] = x[..., n_samples - n_padding :] = 0
    return x


def answer_and_gradient(network, x):
    x = x.clone().requires_grad_()
    logits = network(x)
    return logits, torch.autograd.grad((logits * torch.arange(1, 4, dtype=x.dtype)).sum(), x)[0]


def test_the_table_is_complete():
    assert KINDS.keys() == MEMBERS.builtin.keys()


@pytest.mark.parametrize("bands", ["all", "rings:even", ((0.0, 20.0), (40.0, 50.0))])
@pytest.mark.parametrize("kind", KINDS)
class TestEveryMember:
    @pytest.mark.parametrize("n_samples", [1200, 1201, 1207, 997])
    def test_shapes(self, kind, bands, n_samples):
        network = member(kind, bands=bands)
        x = signals(n_samples)
        assert network(x).shape == (4, 3)
        assert embed(network, x).shape == (4, count_features(network, x))

    def test_logits_are_the_head_of_the_features(self, kind, bands):
        network, x = member(kind, bands=bands), signals()
        logits, features = forward_with_features(network, x)
        head = network.head if bands == "all" else network.network.head
        torch.testing.assert_close(logits, network(x))
        torch.testing.assert_close(features, embed(network, x))
        torch.testing.assert_close(head(features), logits)

    def test_norm_outputs_are_read_whether_or_not_norms_are_folded(self, kind, bands):
        network, x = member(kind, bands=bands).double(), signals(n_padding=0).double()
        for number, norm in enumerate(norm_layers(network)):
            seen = []
            handle = norm.register_forward_hook(lambda module, inputs, output, seen=seen: seen.append(output.clone()))
            network(x)
            handle.remove()
            with freeze(network):
                torch.testing.assert_close(norm_output(network, x, number), seen[0])

    def test_activations_of_recordings_of_other_lengths_can_be_compared(self, kind, bands):
        network = member(kind, bands=bands)
        source, target = signals(n_padding=300), signals(n_padding=10).flip(0)
        layer = len(norm_layers(network)) // 2
        moved = distill_features(network, source, target, layer, epsilon=100.0, n_steps=10)
        assert (moved - source).abs().max() <= 100.0 * (1 + 1e-5)
        with torch.no_grad():
            wanted = norm_output(network, target, layer)
            before, after = ((norm_output(network, z, layer) - wanted).square().mean() for z in (source, moved))
        assert after < before

    @pytest.mark.parametrize("n_samples", [1200, 1201, 1207, 997])
    def test_folding_does_not_change_the_output(self, kind, bands, n_samples):
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
            torch.testing.assert_close(folded, plain, rtol=tolerance, atol=tolerance)
            if dtype == torch.float64:
                torch.testing.assert_close(folded_gradient, plain_gradient, rtol=1e-7, atol=1e-12)
            else:
                assert (folded_gradient.sign() == plain_gradient.sign()).double().mean() >= 0.99
            with torch.inference_mode():
                torch.testing.assert_close(network(x), plain.detach(), rtol=tolerance, atol=tolerance)

    def test_folded_weights_follow_changes_of_the_weights(self, kind, bands):
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

    def test_recordings_of_a_batch_do_not_affect_each_other(self, kind, bands):
        network, x = member(kind, bands=bands), signals()
        torch.testing.assert_close(network(x)[2:3], network(x[2:3]), rtol=1e-4, atol=1e-5)

    def test_gradients_reach_the_input_and_every_parameter(self, kind, bands):
        network, x = member(kind, bands=bands).train(), signals().requires_grad_()
        network(x).logsumexp(dim=1).sum().backward()
        assert torch.isfinite(x.grad).all()
        assert (x.grad[..., 100:-100] != 0).float().mean() > 0.4  # the dilated pools never read every second sample
        for name, parameter in network.named_parameters():
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name

    def test_a_network_can_be_trained_after_predicting(self, kind, bands):
        network, x = member(kind, bands=bands), signals()
        with torch.inference_mode():
            network(x)
        x = x.clone().requires_grad_()
        network(x).sum().backward()
        assert x.grad is not None

    def test_the_seed_fixes_the_weights_and_restores_the_global_generator(self, kind, bands):
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        states = [member(kind, bands=bands, seed=s, index=i).state_dict() for s, i in ((0, 0), (0, 0), (1, 0), (0, 1))]
        assert torch.equal(before, torch.random.get_rng_state())
        name = next(key for key in states[0] if key.endswith("head.weight"))
        assert torch.equal(states[0][name], states[1][name])
        assert not torch.equal(states[0][name], states[2][name])
        assert not torch.equal(states[0][name], states[3][name])

    @pytest.mark.parametrize("n_live", [1, 10, 40])
    def test_a_very_short_recording_gives_finite_logits(self, kind, bands, n_live):
        network = member(kind, bands=bands)
        for start in (0, 7, 601, 1200 - n_live):
            x = torch.zeros(1, 2, 1200)
            x[..., start : start + n_live] = 100.0
            assert torch.isfinite(network(x)).all()

    def test_a_zero_recording_gives_finite_logits(self, kind, bands):
        assert torch.isfinite(member(kind, bands=bands)(torch.zeros(2, 2, 1200))).all()


class Plain(nn.Module):
    """A network without `embed`, whose linear layers are not built in the order in which they run."""

    def __init__(self, n_chans, n_outputs):
        super().__init__()
        self.last = nn.Linear(6, n_outputs)
        self.conv = nn.Conv1d(n_chans, 8, 15, stride=4)
        self.norm = nn.BatchNorm1d(8)
        self.first = nn.Linear(8, 6)

    def forward(self, x):
        return self.last(torch.relu(self.first(torch.relu(self.norm(self.conv(x))).mean(dim=2))))


class Embedding(Plain):
    """A network whose `embed` is not what its last layer reads."""

    def embed(self, x):
        return self.conv(x).mean(dim=2)


def test_features_of_any_network_are_the_input_of_the_linear_layer_that_runs_last():
    network = build_member(Plain, n_leads=2, n_classes=3, rate_hz=300.0, seed=0).eval()
    logits, features = forward_with_features(network, signals())
    assert features.shape == (4, 6) and count_features(network, signals()) == 6
    torch.testing.assert_close(network.last(features), logits)
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in network.modules())


def test_a_method_embed_comes_first():
    network = Embedding(2, 3).eval()
    torch.testing.assert_close(forward_with_features(network, signals())[1], network.embed(signals()))
    filtered = BandFilter([(0, 20)], 300.0).then(network)
    torch.testing.assert_close(embed(filtered, signals()), network.embed(filtered.band_filter(signals())))


def test_a_network_without_features_or_norms_is_refused_with_what_to_do():
    network = nn.Sequential(nn.Conv1d(2, 3, 5), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    with pytest.raises(MemberError, match="has no features to read: give it a method embed"):
        embed(network, signals())
    with pytest.raises(MemberError, match="no batch-norm layer"):
        norm_output(network, signals(), 0)


def test_a_factory_gets_what_it_has_parameters_for():
    def everything(n_leads, num_classes, sfreq, index, *, depth=1):
        network = nn.Flatten()
        network.seen = (n_leads, num_classes, sfreq, index, depth)
        return network

    shape = {"n_leads": 2, "n_classes": 5, "rate_hz": 300.0}
    assert build_member(everything, **shape, index=3, options={"depth": 4}).seen == (2, 5, 300.0, 3, 4)
    assert isinstance(build_member(lambda: nn.Flatten(), **shape), nn.Flatten)
    with pytest.raises(MemberError, match="unknown option width; known: depth"):
        build_member(everything, **shape, options={"width": 1})
    with pytest.raises(MemberError, match="parameter size has no value"):
        build_member(lambda size: nn.Flatten(), **shape)
    with pytest.raises(MemberError, match="expected it to build an nn.Module"):
        build_member(lambda: 1, **shape)


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_read_in_several_threads_at_once(kind):
    network = member(kind).eval()
    batches = [torch.randn(2, 2, 600, generator=torch.Generator().manual_seed(i)) for i in range(8)]
    with torch.no_grad():
        expected = [(network(x), network.embed(x)) for x in batches]

        def read(number):
            with torch.no_grad():
                network(batches[number - 1])  # a plain call in between is nobody's features
                return forward_with_features(network, batches[number])

        with ThreadPoolExecutor(4) as pool:
            for _ in range(5):
                for found, (logits, features) in zip(pool.map(read, range(8)), expected, strict=True):
                    torch.testing.assert_close(found[0], logits)
                    torch.testing.assert_close(found[1], features)
