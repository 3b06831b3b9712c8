"""The paper's network against an independent, plain implementation: `benchmarks.published`."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.published import Published
from ecgquorum.members import BandFilter, DilatedMember, rings
from ecgquorum.members.dilated import EVERY, PLANS


@pytest.fixture
def pair():
    """Both implementations with the same random weights and batch-norm statistics."""
    torch.manual_seed(0)
    published, ours = Published(1, 4).eval(), DilatedMember(1, 4).eval()
    for norm in published.norms:
        nn.init.uniform_(norm.running_mean, -0.1, 0.1)
        nn.init.uniform_(norm.running_var, 0.5, 1.5)
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.uniform_(norm.bias, -0.1, 0.1)
    for block, conv, norm in zip(ours.blocks, published.convs, published.norms, strict=True):
        block.conv.load_state_dict(conv.state_dict())
        block.norm.load_state_dict(norm.state_dict())
    ours.head.load_state_dict(published.linear.state_dict())
    return published, ours


@pytest.mark.parametrize("n_samples", [1500, 1501, 1502, 1503, 1504, 1505, 1506, 1507, 3000])
def test_logits_features_and_gradients_agree(pair, n_samples):
    published, ours = pair
    x = (torch.randn(2, 1, n_samples) * 300).requires_grad_()
    logits, features = published(x)
    torch.testing.assert_close(ours(x), logits)
    torch.testing.assert_close(ours.embed(x), features)
    weight = torch.randn(2, 4)
    expected = torch.autograd.grad((logits * weight).sum(), x)[0]
    found = torch.autograd.grad((ours(x) * weight).sum(), x)[0]
    torch.testing.assert_close(found, expected)


LIVE = [slice(1, None, 2)] * 6 + [slice(i % 2, None, 2) for i in (0, 1, 0, 1, 1)] + [slice(None)] * 2
"""What is read of each block: by hand, from its pool, or from what the next block reads."""


def with_live_statistics(published, x):
    """The published network in training without dropout; batch-norm statistics are over positions that are read."""
    for i, (conv, norm) in enumerate(zip(published.convs, published.norms, strict=True), start=1):
        y = conv(x)
        seen = y[..., LIVE[i - 1]]
        mean, variance = seen.mean(dim=(0, 2)), seen.var(dim=(0, 2), unbiased=False)
        scaled = (y - mean[:, None]) / torch.sqrt(variance[:, None] + norm.eps)
        x = F.relu(scaled * norm.weight[:, None] + norm.bias[:, None])
        if i in (1, 6, 11):
            x = F.max_pool1d(x, kernel_size=2, stride=2, padding=1, dilation=2)
    return published.linear(x.mean(dim=2))


@pytest.mark.parametrize("n_samples", [1501, *(pytest.param(n, marks=pytest.mark.long) for n in (1500, 1502, 1507))])
def test_a_training_step_agrees_too(pair, n_samples):
    """Logits, the gradients of every parameter and the running statistics, in float64."""
    published, ours = (network.double().train() for network in pair)
    for block in ours.blocks:
        block.dropout.p = 0.0
    x = torch.randn(3, 1, n_samples, dtype=torch.float64) * 300
    weight = torch.randn(3, 4, dtype=torch.float64)
    expected, found = with_live_statistics(published, x), ours(x)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    (expected * weight).sum().backward()
    (found * weight).sum().backward()
    for block, conv, norm in zip(ours.blocks, published.convs, published.norms, strict=True):
        torch.testing.assert_close(block.conv.weight.grad, conv.weight.grad, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(block.norm.weight.grad, norm.weight.grad, rtol=1e-6, atol=1e-9)
        assert not torch.equal(block.norm.running_mean, norm.running_mean)


@pytest.mark.parametrize("frozen", [False, True])
def test_it_computes_in_bfloat16_under_autocast(pair, frozen):
    """With frozen parameters, as under attack, folded norms and kept transforms are in use."""
    _, ours = pair
    x = (torch.randn(2, 1, 2000) * 300).requires_grad_()
    expected = ours.train(not frozen)(x)
    ours.requires_grad_(not frozen)
    with torch.autocast("cpu", torch.bfloat16):
        found = ours(x)
    F.cross_entropy(found.float(), torch.tensor([0, 1])).backward()
    assert x.grad.isfinite().all() and x.grad.any()
    if frozen:  # in training mode dropout differs
        assert (found.float() - expected).norm() < 0.1 * expected.norm()


def test_positions_that_are_not_read_are_not_computed(pair):
    """The published network's convolutions give twice as many positions as ours, all the way to the last pool."""
    published, ours = pair
    sizes = {"published": [], "ours": []}
    for conv in published.convs:
        conv.register_forward_hook(lambda module, inputs, output: sizes["published"].append(output.shape[2]))
    for block in ours.blocks:
        block.norm.register_forward_hook(lambda module, inputs, output: sizes["ours"].append(output.shape[2]))
    x = torch.randn(1, 1, 3000)
    published(x)
    ours(x)
    assert [plan.gives for plan in PLANS[11:]] == [EVERY, EVERY]
    for block, (theirs, mine) in enumerate(zip(sizes["published"], sizes["ours"], strict=True)):
        assert abs(mine - (theirs / 2 if block < 11 else theirs)) <= 0.5


def test_the_size_is_the_published_one(pair):
    published, ours = pair
    count = sum(p.numel() for p in published.parameters())
    assert sum(p.numel() for p in ours.parameters()) == count
    assert ours.embed(torch.zeros(1, 1, 1500)).shape == (1, 64)


def test_bands_come_before_the_network():
    plain = DilatedMember(1, 4).eval()
    ours = BandFilter(rings(300.0, 1), 300.0).then(plain)
    x = torch.randn(1, 1, 1500) * 300
    torch.testing.assert_close(ours(x), plain(ours.band_filter(x)))
