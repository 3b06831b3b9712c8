import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ecgquorum.errors import MemberError
from ecgquorum.members import BandFilter, parse_bands, rings

RATES = st.sampled_from([100.0, 128.0, 257.0, 300.0, 500.0])


@given(n_samples=st.integers(8, 3000), rate_hz=RATES, seed=st.integers(0, 3))
def test_complementary_rings_rebuild_the_signal(n_samples, rate_hz, seed):
    x = torch.randn(2, 1, n_samples, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    even, odd = BandFilter(rings(rate_hz, 0), rate_hz), BandFilter(rings(rate_hz, 1), rate_hz)
    assert torch.equal(even.mask(n_samples) + odd.mask(n_samples), torch.ones(n_samples // 2 + 1))
    torch.testing.assert_close(even(x) + odd(x), x)


@given(n_samples=st.integers(600, 3000), rate_hz=RATES, hertz=st.floats(3, 45))
def test_a_tone_passes_inside_its_bands_and_nowhere_else(n_samples, rate_hz, hertz):
    bin_number = round(hertz * n_samples / rate_hz)
    exact = bin_number * rate_hz / n_samples
    tone = torch.cos(2 * torch.pi * exact / rate_hz * torch.arange(n_samples, dtype=torch.float64))[None, None]
    inside_filter, outside_filter = (
        BandFilter([(exact - 1, exact + 1)], rate_hz),
        BandFilter([(exact + 1, exact + 2)], rate_hz),
    )
    torch.testing.assert_close(inside_filter(tone), tone, atol=1e-6, rtol=0)
    torch.testing.assert_close(outside_filter(tone), torch.zeros_like(tone), atol=1e-6, rtol=0)


def test_the_papers_rings():
    even = BandFilter(parse_bands("rings:even", 300.0), 300.0).mask(18000).numpy()
    expected = np.repeat([1, 0] * 5, 900)
    np.testing.assert_array_equal(even[:9000], expected)
    assert even[9000] == 0
    assert parse_bands("rings:even", 300.0)[:2] == ((0.0, 15.0), (30.0, 45.0))
    assert parse_bands("all", 300.0) is None


def test_the_mask_is_the_complex_fft_filter_of_the_paper():
    x = torch.randn(3, 2, 1800, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    band = BandFilter(rings(300.0, 0), 300.0)
    half = band.mask(1800).double()
    full = torch.cat([half, half[1:-1].flip(0)])
    torch.testing.assert_close(band(x), torch.fft.ifft(torch.fft.fft(x) * full).real)


def test_the_filter_is_not_in_the_state_dict():
    band = BandFilter(rings(300.0, 0), 300.0)
    assert not list(band.parameters())
    assert not band.state_dict()


def test_masks_of_lengths_with_equal_bin_counts_are_not_confused():
    x = torch.randn(1, 1, 1201)
    used, fresh = BandFilter(rings(300.0, 0), 300.0), BandFilter(rings(300.0, 0), 300.0)
    used(x[..., :1200])
    assert torch.equal(used(x), fresh(x))


def test_the_gradient_is_filtered_too():
    x = torch.randn(1, 1, 900, dtype=torch.float64, requires_grad=True)
    band = BandFilter([(0.0, 10.0)], 300.0)
    weight = torch.randn(1, 1, 900, dtype=torch.float64)
    (band(x) * weight).sum().backward()
    torch.testing.assert_close(x.grad, band(weight))


@pytest.mark.parametrize("bands", [[(200.0, 300.0)], [(20.0, 10.0)], [(-5.0, 10.0)]])
def test_impossible_bands_are_refused(bands):
    with pytest.raises(MemberError, match="0 <= low < high, low below 150 Hz"):
        BandFilter(bands, 300.0)


def test_padding_stays_zero():
    x = torch.zeros(1, 2, 900)
    x[..., 300:500] = torch.randn(1, 2, 200)
    filtered = BandFilter([(0, 15)], 300.0)(x)
    assert not filtered[..., :300].any() and not filtered[..., 500:].any() and filtered[..., 300:500].all()


@given(height=st.integers(4, 20), width=st.integers(4, 20), seed=st.integers(0, 3))
def test_rings_of_images_rebuild_the_image(height, width, seed):
    x = torch.randn(2, 3, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    low, high = BandFilter([(0, 0.2)], 1.0, dims=2), BandFilter([(0.2, 0.5)], 1.0, dims=2)
    torch.testing.assert_close(low(x) + high(x), x)


def test_a_ring_of_an_image_is_the_radial_frequency():
    x = torch.zeros(1, 1, 16, 16, dtype=torch.float64)
    place = torch.arange(16, dtype=torch.float64)
    x[0, 0] = torch.cos(2 * torch.pi * (3 * place[:, None] + 4 * place[None]) / 16)  # |(3, 4)| / 16 = 5 / 16
    torch.testing.assert_close(BandFilter([(4.9 / 16, 5.1 / 16)], 1.0, dims=2)(x), x, atol=1e-6, rtol=0)
    assert BandFilter([(0, 4.9 / 16)], 1.0, dims=2)(x).abs().max() < 1e-6
    with pytest.raises(MemberError, match="dims of 1"):
        BandFilter([(0, 1)], 4.0, dims=3)


def test_a_filtered_member_sees_its_bands_only():
    network = nn.Sequential(nn.Flatten(), nn.Linear(900, 3))
    member = BandFilter([(0, 15)], 300.0).then(network)
    x = torch.randn(2, 1, 900)
    torch.testing.assert_close(member(x), network(member.band_filter(x)))
    torch.testing.assert_close(member.embed(x), member.band_filter(x)[:, 0])
