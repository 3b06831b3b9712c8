"""Tiled convolutions against PyTorch's own, with their gradients, for every geometry."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from ecgquorum.members.kernels import tiled_convolution
from ecgquorum.members.kernels.dropout import Dropout
from ecgquorum.members.kernels.tiled_convolution import Geometry, TiledKernel, convolve, is_worth_tiling, transform


@pytest.fixture
def always_tiled(monkeypatch):
    monkeypatch.setattr(tiled_convolution, "is_worth_tiling", lambda *a: True)


def plain(x, weight, bias, geometry):
    padded = F.pad(x, (geometry.left, geometry.right))
    return F.conv1d(padded, weight, bias, dilation=geometry.dilation)


GEOMETRIES = st.builds(
    Geometry,
    kernel=st.sampled_from([8, 16]),
    dilation=st.integers(1, 8),
    left=st.integers(-5, 130),
    right=st.integers(-5, 130),
    step=st.just(1),
)


@given(GEOMETRIES, st.integers(130, 400), st.integers(1, 5), st.booleans(), st.integers(0, 3))
def test_tiles_convolve_exactly(geometry, n_samples, n_records, relu, seed):
    draw = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=draw).requires_grad_()

    x, weight, bias = drawn(n_records, 3, n_samples), drawn(4, 3, geometry.kernel), drawn(4)
    expected = plain(x, weight, bias, geometry)
    expected = F.relu(expected) if relu else expected
    found = tiled_convolution._TiledConvolution.apply(x, weight, bias, geometry, relu, None)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    direction = drawn(*expected.shape).detach()
    wanted = torch.autograd.grad((expected * direction).sum(), (x, weight, bias))
    gotten = torch.autograd.grad((found * direction).sum(), (x, weight, bias))
    for one, other in zip(gotten, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


def test_gradients_pass_gradcheck():
    x = torch.randn(2, 2, 60, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 2, 8, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)
    geometry = Geometry(8, 2, 7, 7)
    apply = tiled_convolution._TiledConvolution.apply
    assert torch.autograd.gradcheck(lambda *a: apply(*a, geometry, False, None), (x, weight, bias))


@pytest.mark.parametrize("kernel", [8, 16])
def test_rounding_is_that_of_float32(kernel):
    torch.manual_seed(0)
    x, weight = torch.randn(2, 128, 700), torch.randn(128, 128, kernel) / 30
    geometry = Geometry(kernel, 2, 15, 15)
    exact = plain(x.double(), weight.double(), None, geometry)
    error = (convolve(x, weight, None, geometry) - exact).abs().max() / exact.abs().max()
    assert error < 1e-5


def test_under_autocast_products_are_in_bfloat16_and_gradients_of_weights_are_not(always_tiled):
    torch.manual_seed(0)
    geometry, bias = Geometry(16, 2, 15, 15), torch.randn(32, requires_grad=True)
    x, weight = torch.randn(3, 32, 900, requires_grad=True), (torch.randn(32, 32, 16) / 20).requires_grad_()
    exact = plain(x, weight, bias, geometry)
    kept = TiledKernel(weight.detach())
    with torch.autocast("cpu", torch.bfloat16):
        found = convolve(x, weight, bias, geometry, tiled=lambda: kept)
    assert found.dtype == torch.bfloat16
    direction = torch.randn_like(exact)
    wanted = torch.autograd.grad((exact * direction).sum(), (x, weight, bias))
    gotten = torch.autograd.grad((found.float() * direction).sum(), (x, weight, bias))
    for one, other in zip((found, *gotten), (exact, *wanted), strict=True):
        assert (one.float() - other).norm() < 0.02 * other.norm()  # bfloat16 has 8 bits: 0.004 for each rounding
    assert {gradient.dtype for gradient in gotten} == {torch.float32}


def test_a_cached_transform_gives_the_same_result(always_tiled):
    x, weight = torch.randn(2, 3, 200).requires_grad_(), torch.randn(4, 3, 8)
    geometry, kept = Geometry(8, 1, 3, 4), TiledKernel(weight)
    one = convolve(x, weight, None, geometry, tiled=lambda: kept)
    other = convolve(x, weight, None, geometry)
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x)[0] for y in (one, other)))


def test_tiles_need_fewer_products():
    """Real products an output sample and channel pair, the guard of the speed: about two, whatever the kernel."""
    for kernel, most in ((8, 2.2), (16, 2.2)):
        tile = tiled_convolution._TILE[kernel]
        rows = len(transform(tile, kernel, torch.float64).kernel)
        assert rows / (tile - kernel + 1) <= most < kernel / 3
        assert tile - kernel + 1 >= kernel - 1  # or a tile would look further ahead than the next one


def test_small_shapes_and_gpus_are_left_to_pytorch():
    long = Geometry(16, 2, 15, 15)
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert is_worth_tiling(256, 256, long, 4500, cpu)
    assert not is_worth_tiling(256, 256, long, 4500, gpu)
    assert not is_worth_tiling(1, 320, long, 9000, cpu)
    assert not is_worth_tiling(256, 256, long, 100, cpu)
    assert not is_worth_tiling(256, 256, Geometry(24, 1, 11, 11), 4500, cpu)
    assert not is_worth_tiling(256, 256, Geometry(16, 1, 11, 11, step=2), 4500, cpu)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(-3, 9), st.integers(-3, 9))
def test_other_shapes_use_a_plain_convolution(step, dilation, left, right):
    x, weight = torch.randn(2, 3, 60), torch.randn(4, 3, 5)
    geometry = Geometry(5, dilation, left, right, step)
    found = convolve(x, weight, None, geometry)
    torch.testing.assert_close(found, F.conv1d(F.pad(x, (left, right)), weight, stride=step, dilation=dilation))
    assert found.shape[2] == geometry.n_out(60)


# --- dropout ---------------------------------------------------------------------------------------------------------


def test_dropout_drops_its_share_and_keeps_the_mean():
    dropout, x = Dropout(0.3).train(), torch.ones(1000, 500)
    y = dropout(x)
    assert (y == 0).double().mean() == pytest.approx(0.3, abs=0.003)
    assert y.mean() == pytest.approx(1, abs=0.005)
    assert y.unique().tolist() == pytest.approx([0, 1 / 0.7], rel=1e-4)
    assert torch.equal(dropout.eval()(x), x)
    assert torch.equal(Dropout(0.0).train()(x), x)


def test_seeding_pytorch_fixes_dropout():
    dropout, x = Dropout(0.5).train(), torch.ones(200)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append((dropout(x), dropout(x)))
    assert torch.equal(drawn[0][0], drawn[1][0]) and torch.equal(drawn[0][1], drawn[1][1])
    assert not torch.equal(drawn[0][0], drawn[2][0]) and not torch.equal(drawn[0][0], drawn[0][1])
