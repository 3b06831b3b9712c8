import numpy as np
import pytest
import torch
from scipy.signal import firwin, freqz

from ecgquorum.errors import MemberError
from ecgquorum.members import CompactMember, freeze, valid_span
from ecgquorum.members.compact import Decimation
from ecgquorum.members.contract import downsample_mask
from ecgquorum.members.pooling import POOLINGS


def random_statistics(network):
    generator = torch.Generator().manual_seed(2)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.copy_(torch.randn(module.num_features, generator=generator))
            module.bias.data.copy_(torch.randn(module.num_features, generator=generator))
    return network.eval()


@pytest.mark.parametrize(("n_leads", "rate_hz"), [(1, 300.0), (12, 500.0), (12, 100.0)])
def test_compact_has_0_4_million_parameters(n_leads, rate_hz):
    count = sum(p.numel() for p in CompactMember(n_leads, 4, rate_hz).parameters())
    assert 200_000 <= count <= 600_000


@pytest.mark.parametrize("low_pass", [True, False])
@pytest.mark.parametrize("crop", [True, False])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_logits_do_not_depend_on_the_amount_of_padding(pooling, crop, low_pass):
    network = random_statistics(CompactMember(1, 4, 300.0, width=0.25, pooling=pooling, low_pass=low_pass).double())
    network.crop_padding = crop
    signal = torch.randn(1, 1, 2400, dtype=torch.float64) * 300
    bare = network(signal)
    for left, right in ((96, 96), (960, 0), (0, 480), (4800, 4800)):  # by whole steps of the coarsest grid
        padded = torch.nn.functional.pad(signal, (left, right))
        torch.testing.assert_close(network(padded), bare)


@pytest.mark.parametrize(("dilation", "low_pass", "seconds"), [(1, True, 5.5), (2, True, 11.3), (2, False, 11.3)])
def test_the_receptive_field_is_as_described(dilation, low_pass, seconds):
    rate = 100 if low_pass else 300
    network = CompactMember(1, 4, float(rate), width=0.25, dilation=dilation, low_pass=low_pass)
    network = random_statistics(network.double())
    x = torch.ones(1, 1, 32 * rate, dtype=torch.float64, requires_grad=True)
    recorded = []
    network.pooling.register_forward_pre_hook(lambda _, inputs: recorded.append(inputs[0]))
    network(x)
    (gradient,) = torch.autograd.grad(recorded[0][..., 50].sum(), x)
    reached = gradient[0, 0].nonzero().flatten()
    assert (reached[-1] - reached[0] + 1).item() / rate == pytest.approx(seconds, abs=0.1)


@pytest.mark.parametrize("frozen", [True, False])
def test_only_without_the_low_pass_filter_do_high_frequencies_reach_the_logits(frozen):
    time = torch.arange(3000) / 300
    slow, fast = (50 * torch.sin(2 * torch.pi * f * time)[None, None] for f in (10.0, 90.0))

    def change(low_pass):
        torch.manual_seed(0)
        network = CompactMember(1, 4, 300.0, width=0.25, low_pass=low_pass).eval()
        with freeze(network) if frozen else torch.no_grad():
            return (network(slow + fast) - network(slow)).abs().max().item()

    assert change(low_pass=True) < 0.05 * change(low_pass=False)


def test_an_attack_does_not_change_views_in_place():
    """The backward pass of such a change copies the whole gradient, which took a quarter of an attack's time."""
    network = CompactMember(1, 4, 300.0, width=0.25)
    x = torch.randn(2, 1, 2400, requires_grad=True)
    with freeze(network):
        waiting = [network(x).grad_fn]
    names = set()
    while waiting:
        if (node := waiting.pop()) is not None:
            names.add(node.name())
            waiting += [following for following, _ in node.next_functions]
    assert "ReluBackward0" in names
    assert not any("CopySlices" in name for name in names)


@pytest.mark.parametrize(("option", "value"), [("pooling", "median"), ("dilation", 0), ("low_pass", "no")])
def test_wrong_options_are_explained(option, value):
    with pytest.raises(MemberError, match=f"{option}: expected .*, found"):
        CompactMember(1, 4, 300.0, **{option: value})


def test_downsampled_masks_keep_every_valid_sample():
    live = torch.zeros(1, 1, 100)
    live[..., 50] = 1
    assert downsample_mask(live, 96).tolist() == [[[1.0, 0.0]]]
    assert downsample_mask(downsample_mask(live, 3), 2).shape == live[..., ::6].shape
    assert downsample_mask(live, 1) is live


def test_valid_spans_are_found():
    x = torch.zeros(3, 2, 10)
    x[0, 0, 3] = x[0, 1, 7] = 1
    x[1] = 1
    expected = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 0, 0], [1] * 10, [1] * 10])
    assert torch.equal(valid_span(x)[:, 0], expected.float())


@pytest.mark.parametrize("factor", [2, 3, 5, 10, 40])
def test_the_filter_is_that_of_scipy(factor):
    expected = firwin(16 * factor + 1, 0.9 / factor)
    np.testing.assert_allclose(Decimation(factor).taps[0, 0], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_decimation_passes_low_and_stops_high_frequencies(factor):
    layer = Decimation(factor)
    hertz, response = freqz(layer.taps[0, 0].double().numpy(), worN=2000, fs=100 * factor)
    gain = np.abs(response)
    assert np.abs(gain[hertz < 35] - 1).max() < 0.02
    assert gain[hertz > 55].max() < 0.01
    assert layer(torch.zeros(1, 2, 100 * factor + 1)).shape == (1, 2, 101)


def test_decimation_is_differentiable_and_fixed():
    layer = Decimation(3)
    assert not list(layer.parameters())
    assert torch.autograd.gradcheck(layer, torch.randn(1, 1, 40, dtype=torch.float64, requires_grad=True))
