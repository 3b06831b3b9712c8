import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.members.pooling import POOLINGS, build_pooling


def test_poolings_of_known_values():
    h = torch.tensor([1.0, 2.0, 3.0, 100.0]).reshape(1, 1, 1, 4)
    mask = torch.tensor([1.0, 1.0, 1.0, 0.0]).reshape(1, 1, 1, 4)
    assert build_pooling("mean", 1)(h, mask).item() == 2.0
    mean, deviation = build_pooling("mean+std", 1)(h, mask)[0]
    assert mean.item() == 2.0
    assert deviation.item() == pytest.approx((2 / 3) ** 0.5, rel=1e-4)
    pooling = build_pooling("mean+max+attention", 1)
    torch.nn.init.zeros_(pooling.attention.weight)  # even attention is the mean
    mean, highest, attended = pooling(h, mask)[0]
    assert (mean.item(), highest.item(), attended.item()) == pytest.approx((2.0, 3.0, 2.0))
    torch.nn.init.constant_(pooling.attention.weight, 50.0)  # sharp attention is the maximum
    assert pooling(h, mask)[0, 2].item() == pytest.approx(3.0)


@pytest.mark.parametrize("name", POOLINGS)
@given(seed=st.integers(0, 100), n_padding=st.integers(0, 5))
def test_padding_and_the_order_of_samples_do_not_matter(name, seed, n_padding):
    generator = torch.Generator().manual_seed(seed)
    pooling = build_pooling(name, 3).double()
    h = torch.rand(2, 3, 1, 7, generator=generator, dtype=torch.float64)
    mask = torch.ones(2, 1, 1, 7 + n_padding, dtype=torch.float64)
    mask[..., 7:] = 0
    padded = torch.cat([h, torch.rand(2, 3, 1, n_padding, generator=generator, dtype=torch.float64)], dim=3)
    found = pooling(h[..., torch.randperm(7, generator=generator)], None)
    assert found.shape == (2, pooling.n_out)
    torch.testing.assert_close(pooling(padded, mask), found)


@pytest.mark.parametrize("name", POOLINGS)
def test_gradients_are_finite_where_nothing_varies(name):
    h = torch.zeros(1, 2, 1, 5, requires_grad=True)
    build_pooling(name, 2)(h, None).sum().backward()
    assert h.grad.isfinite().all()
