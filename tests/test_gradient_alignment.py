"""Gradient alignment: closed forms, invariances, second derivatives, and its limits in training.

In training, recordings are two groups of noisy cues for one of two classes, and idle inputs that say nothing about it.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from ecgquorum.errors import MemberError
from ecgquorum.losses import gradient_alignment, input_gradients
from ecgquorum.members import MEMBERS, build_member, evaluation_mode
from ecgquorum.members.pooling import POOLINGS

GROUPS, N_IDLE = ((4, 0.5), (4, 0.8)), 8
N_INPUTS = sum(n for n, _ in GROUPS) + N_IDLE


def gradients(seed, n_records=6, shape=(2, 15)):
    return torch.randn(n_records, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_identical_opposite_and_orthogonal_gradients():
    g = gradients(0)
    turned = torch.cat([-g[..., 1:2], g[..., :1], torch.zeros_like(g[..., 2:])], dim=2)
    assert gradient_alignment(g, g).item() == pytest.approx(1)
    assert gradient_alignment(g, -g).item() == pytest.approx(-1)
    assert gradient_alignment(g, turned).item() == pytest.approx(0, abs=1e-12)
    assert gradient_alignment(g, [g, turned]).item() == pytest.approx(math.log((math.e + 1) / 2))
    assert gradient_alignment(g, []).item() == 0 and gradient_alignment(g[:0], g[:0]).item() == 0


def test_with_one_earlier_member_it_is_the_mean_cosine():
    g, h = gradients(0), gradients(1)
    expected = F.cosine_similarity(g.flatten(1), h.flatten(1)).mean()
    torch.testing.assert_close(gradient_alignment(g, h), expected)


@given(st.integers(0, 100), st.permutations(range(3)), st.integers(-30, 30), st.integers(-30, 30))
def test_lengths_and_the_order_of_members_and_records_do_not_matter(seed, order, ours, theirs):
    """In single precision: squares of gradients per microvolt of a certain record underflow."""
    g, *earlier = (gradients(4 * seed + k).float() for k in range(4))
    value = gradient_alignment(g, earlier)
    assert -1 <= value.item() <= 1
    scaled = gradient_alignment(g * 10.0**ours, [earlier[k] * 10.0**theirs for k in order])
    torch.testing.assert_close(scaled, value, atol=1e-5, rtol=0)
    torch.testing.assert_close(gradient_alignment(g.flip(0), [one.flip(0) for one in earlier]), value)
    torch.testing.assert_close(gradient_alignment(earlier[0], g), gradient_alignment(g, earlier[0]))
    assert gradient_alignment(g, earlier[:1]).item() == pytest.approx(-gradient_alignment(-g, earlier[0]).item())


def test_a_record_without_a_gradient_has_no_cosine_and_no_effect():
    g, h = gradients(0), gradients(1)
    g[2] = 0
    g.requires_grad_()
    loss = gradient_alignment(g, h)
    (by_gradient,) = torch.autograd.grad(loss, g)
    assert by_gradient.isfinite().all()
    expected = F.cosine_similarity(g.flatten(1), h.flatten(1))
    assert loss.item() == pytest.approx(expected.sum().item() / len(g)) and expected[2] == 0


def test_the_gradient_of_the_loss_passes_gradcheck():
    g, earlier = gradients(0, 3, (1, 5)).requires_grad_(), [gradients(1, 3, (1, 5)), gradients(2, 3, (1, 5))]
    assert torch.autograd.gradcheck(lambda one: gradient_alignment(one, earlier), g)
    (by_gradient,) = torch.autograd.grad(gradient_alignment(g, earlier), g)
    along = (by_gradient * g.detach()).sum(dim=(1, 2))
    torch.testing.assert_close(along, torch.zeros_like(along))  # nothing is gained by shorter gradients


def test_gradients_of_other_inputs_are_refused():
    with pytest.raises(MemberError, match=r"expected gradients .* found \(6, 2, 15\) and \(5, 2, 15\)"):
        gradient_alignment(gradients(0), gradients(0)[:5])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {} if kind == "dilated" else {"width": 0.2}) for kind in MEMBERS.names()),  # channels enough for tiles
        *(("compact", {"width": 0.2, "pooling": pooling}) for pooling in POOLINGS),
    ],
)
def test_members_are_twice_differentiable(kind, options):
    """The parameters' gradient of the loss against a central difference along a random direction."""
    torch.manual_seed(0)
    member = build_member(kind, n_leads=1, n_classes=4, rate_hz=100.0, options=options).double().eval()
    x, y = 50 * gradients(0, 2, (1, 600)), torch.tensor([1, 3])
    x[1, :, 400:] = 0  # padding
    earlier = gradients(1, 2, (1, 600))
    weights = [p for p in member.parameters() if p.ndim > 1]
    ways = [p.detach().abs().mean() * torch.randn_like(p) for p in weights]

    def loss(moved=0.0):
        with torch.no_grad():
            for weight, way in zip(weights, ways, strict=True):
                weight += moved * way
        return gradient_alignment(input_gradients(member, x, y, create_graph=True), earlier)

    slopes = torch.autograd.grad(loss(), weights)
    slope = sum((s * way).sum().item() for s, way in zip(slopes, ways, strict=True))
    h = 1e-6  # kinks of ReLU within it are rare
    difference = (loss(h) - loss(-2 * h)).item() / (2 * h)
    assert abs(slope) > 1e-4 and slope == pytest.approx(difference, rel=1e-3)


def test_input_gradients_leave_padding_out_and_survive_certainty():
    torch.manual_seed(0)
    member = nn.Sequential(nn.Flatten(), nn.Linear(30, 3))
    x, y = gradients(0).float(), torch.tensor([0, 1, 2, 0, 1, 2])
    valid = torch.ones(6, 1, 15, dtype=torch.bool)
    valid[:, :, 10:] = False
    found = input_gradients(member, x, y, valid)
    assert not found[..., 10:].any() and found[..., :10].any() and not x.requires_grad
    (expected,) = torch.autograd.grad(F.cross_entropy(member(x.requires_grad_()), y, reduction="sum"), x)
    torch.testing.assert_close(found[..., :10], expected[..., :10])
    with torch.no_grad():
        member[1].bias += torch.tensor([60.0, 0.0, 0.0])
    assert input_gradients(member, x[:1], y[:1]).any()  # 1 - p is 0 in single precision


def test_evaluation_mode_keeps_parameters_trainable_and_is_undone():
    member = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5).eval(), nn.BatchNorm1d(3))
    with pytest.raises(KeyError), evaluation_mode(member):
        assert not any(module.training for module in member.modules())
        assert all(p.requires_grad for p in member.parameters())
        raise KeyError
    assert [module.training for module in member.modules()] == [True, True, False, True]


def draw(n_records, generator):
    """Cues and idle inputs (record, input), classes (record,)."""
    y = torch.randint(2, (n_records,), generator=generator)
    noise = torch.randn(n_records, N_INPUTS, generator=generator, dtype=torch.float64)
    spread = torch.cat([torch.full((n,), size) for n, size in (*GROUPS, (N_IDLE, 1.0))])
    means = torch.cat([torch.ones(N_INPUTS - N_IDLE), torch.zeros(N_IDLE)])
    return (2 * y[:, None] - 1) * means + spread * noise, y


def train(first=None, weight=0.0, seed=0):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    member = nn.Sequential(nn.Linear(N_INPUTS, 16), nn.ReLU(), nn.Linear(16, 2)).double()
    optimiser = torch.optim.Adam(member.parameters(), lr=1e-2)
    for _ in range(300):
        x, y = draw(64, generator)
        loss = F.cross_entropy(member(x), y)
        if weight:
            here = input_gradients(member, x, y, create_graph=True)
            loss = loss + weight * gradient_alignment(here, input_gradients(first, x, y))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return member


def measure(member, first, length=3.0):
    """Accuracy, also on recordings moved along the gradient of the first member; alignment."""
    x, y = draw(2000, torch.Generator().manual_seed(99))
    here, earlier = (input_gradients(one, x, y) for one in (member, first))
    with torch.no_grad():
        natural, attacked = (
            (member(z).argmax(dim=1) == y).double().mean().item() for z in (x, x + length * F.normalize(earlier))
        )
    return natural, attacked, gradient_alignment(here, earlier).item()


def test_few_inputs_are_a_limit_where_the_loss_is_bent_and_attacks_transfer_as_before():
    """All members need the same cues here: what is left to meet the term is the loss around the recordings."""
    first = train()
    plain, aligned = (measure(train(first, weight, seed=2), first) for weight in (0.0, 0.2))
    assert plain[2] > 0.9 and aligned[2] < 0.3
    assert aligned[0] > plain[0] - 0.02
    assert abs(aligned[1] - plain[1]) < 0.15
