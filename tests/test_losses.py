"""The decorrelation loss: closed forms, least squares as oracle, finite gradients."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from ecgquorum.errors import MemberError
from ecgquorum.losses import (
    conditional_decorrelation,
    decorrelation,
    fewest_conditional_records,
    fewest_records,
    residual,
    whiten_features,
)

PROJECTIONS = ["regressor", "regressor-with-ones", "regressand"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def features(seed, n_records=64, n_features=64):
    return torch.randn(n_records, n_features, dtype=torch.float64, generator=generator(seed))


def r2(loss):
    return 1 - np.exp(-float(loss))


def swaps(seed, n_pairs):
    """Whether each pair is swapped, replaying the loss's random draws."""
    source, coins = generator(seed), []
    for _ in range(n_pairs):
        coins.append(bool(torch.rand((), generator=source) < 0.5))
        torch.randn(64, 32, generator=source, dtype=torch.float64)
    return coins


def test_the_loss_detects_a_linear_map_of_the_features():
    z = features(0, n_features=32)
    mapped = z @ torch.randn(32, 32, dtype=torch.float64, generator=generator(1)) + 3
    for seed in range(4):
        assert r2(decorrelation(z, [mapped], generator=generator(seed))) > 1 - 1e-3


def test_independent_features_give_the_floor_of_the_batch_size():
    found = [r2(decorrelation(features(2 * s), [features(2 * s + 1)], generator=generator(s))) for s in range(60)]
    assert np.mean(found) == pytest.approx(32 / 63, abs=0.01)


@pytest.mark.parametrize("n_records", [100, 1000])
def test_without_projection_the_loss_is_ordinary_least_squares(n_records):
    a, b = features(0, n_records, 20), features(1, n_records, 20)
    b = b + a @ torch.randn(20, 20, dtype=torch.float64, generator=generator(5)) * 0.3
    fit = LinearRegression().fit(a.numpy(), b.numpy())
    expected = b.numpy() - fit.predict(a.numpy())
    found = residual(a - a.mean(dim=0), b - b.mean(dim=0)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-8)
    # as many projected columns as features: the projector is that of all of them
    ratios = set()
    for seed in range(8):
        ratios.add(round(float(decorrelation(a, [b], generator=generator(seed), n_projected=20)), 5))
    forward, backward = (
        float(np.log(((y - y.mean(0)) ** 2).sum()) - np.log(((y - LinearRegression().fit(x, y).predict(x)) ** 2).sum()))
        for x, y in ((a.numpy(), b.numpy()), (b.numpy(), a.numpy()))
    )
    assert sorted(ratios) == pytest.approx(sorted([forward, backward]), abs=1e-4)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_the_gradient_passes_gradcheck(projection, whiten):
    stored = [features(1, 12, 5), features(2, 12, 5)]

    def loss(z):
        return decorrelation(z, stored, generator=generator(3), n_projected=3, projection=projection, whiten=whiten)

    assert torch.autograd.gradcheck(loss, features(0, 12, 5).requires_grad_())


def test_a_projected_regressand_keeps_its_size():
    """Entries of the projection have variance 1 / n_features; it shows where sums of squares are near the 1e-5."""
    a, b = 1e-4 * features(0, 80), 1e-4 * features(1, 80)
    for seed in range(4):
        source = generator(seed)
        swapped = bool(torch.rand((), generator=source) < 0.5)
        matrix = torch.randn(64, 8, generator=source, dtype=torch.float64) / 8
        regressor, regressand = (b, a) if swapped else (a, b)
        x, y = regressor.numpy(), (regressand @ matrix).numpy()
        total, left = ((y - y.mean(0)) ** 2).sum(), ((y - LinearRegression().fit(x, y).predict(x)) ** 2).sum()
        found = decorrelation(a, [b], generator=generator(seed), n_projected=8, projection="regressand")
        assert float(found) == pytest.approx(np.log(total + 1e-5) - np.log(left + 1e-5), abs=1e-6)
        assert total < 1e-3


def test_every_earlier_member_affects_the_loss():
    """A swap must not leak from one pair to the next: each earlier member alone must change the loss."""
    seen = set()
    for seed in range(12):
        coins = tuple(swaps(seed, 3))
        seen.add(coins)
        z = features(0).requires_grad_()
        others = [features(i).requires_grad_() for i in (1, 2, 3)]
        loss = decorrelation(z, others, generator=generator(seed))
        gradients = torch.autograd.grad(loss, [z, *others])
        assert all(g.abs().max() > 1e-8 for g in gradients), coins
        # the part of our gradient that each pair gives: replacing one earlier member changes it
        for i in range(3):
            replaced = [*others]
            replaced[i] = features(99)
            z2 = features(0).requires_grad_()
            other = torch.autograd.grad(decorrelation(z2, replaced, generator=generator(seed)), z2)[0]
            assert not torch.allclose(other, gradients[0], atol=1e-8)
    assert len(seen) > 3


def test_both_roles_are_drawn_equally_often():
    """Without projection the loss has one of two values, one for each direction of the regression."""
    z, other = features(0, 100, 6), features(1, 100, 6)
    other[:, :2] = z[:, :2]
    other[:, 2:] *= 3
    values = [round(float(decorrelation(z, [other], generator=generator(s), n_projected=6)), 2) for s in range(300)]
    assert len(set(values)) == 2
    assert 0.4 < np.mean(np.array(values) == values[0]) < 0.6


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("kind", ["zero", "constant", "rank 3", "repeated columns", "huge", "tiny"])
def test_gradients_are_finite_for_rank_deficient_features(projection, kind):
    z = features(0, 80)
    z = {
        "zero": torch.zeros_like(z),
        "constant": torch.ones_like(z) * 7,
        "rank 3": z[:, :3] @ torch.randn(3, 64, dtype=torch.float64, generator=generator(2)),
        "repeated columns": z[:, :8].repeat(1, 8),
        "huge": z * 1e6,
        "tiny": z * 1e-6,
    }[kind]
    for seed in range(6):
        for whiten in (False, True):
            ours = z.float().requires_grad_()
            loss = decorrelation(
                ours,
                [z.float(), features(4, 80).float()],
                generator=generator(seed),
                projection=projection,
                whiten=whiten,
            )
            loss.backward()
            assert torch.isfinite(loss)
            assert torch.isfinite(ours.grad).all()


def test_small_batches_are_skipped():
    assert fewest_records(64, 32, "regressor") == 34 == fewest_records(64)
    assert decorrelation(features(0, 33), [features(1, 33)], generator=generator()) == 0
    assert decorrelation(features(0, 34), [features(1, 34)], generator=generator()) > 0
    assert decorrelation(features(0, 65), [features(1, 65)], generator=generator(), projection="regressand") == 0


def test_a_generator_fixes_the_loss_and_projections_are_drawn_at_each_call():
    z, other = features(0), features(1)
    assert decorrelation(z, [other], generator=generator(1)) == decorrelation(z, [other], generator=generator(1))
    one = generator(1)
    assert decorrelation(z, [other], generator=one) != decorrelation(z, [other], generator=one)


def test_the_three_projections_differ_but_all_detect_linear_maps():
    z = features(0, 200, 16)
    mapped = z @ torch.randn(16, 16, dtype=torch.float64, generator=generator(1))
    unrelated = features(7, 200, 16)
    for projection in PROJECTIONS:
        options = {"n_projected": 16, "projection": projection}
        assert r2(decorrelation(z, [mapped], generator=generator(2), **options)) > 0.9
        assert r2(decorrelation(z, [unrelated], generator=generator(2), **options)) < 0.3


def test_inflating_a_direction_does_not_lower_the_whitened_loss():
    base = features(0, 400, 8)
    noise = features(1, 400, 8)
    shared = base + 0.1 * noise
    inflated = torch.cat([shared[:, :7], 1000 * noise[:, 7:]], dim=1)

    def mean_r2(z, whiten):
        return np.mean(
            [r2(decorrelation(z, [base], generator=generator(s), n_projected=8, whiten=whiten)) for s in range(20)]
        )

    assert mean_r2(inflated, whiten=False) < 0.7 * mean_r2(shared, whiten=False)
    assert mean_r2(inflated, whiten=True) > 0.75 * mean_r2(shared, whiten=True)
    covariance = np.cov(whiten_features(shared).numpy().T, bias=True)
    assert np.linalg.cond(covariance) < 1.5


def conditional_r2(a, b, labels, n_projected=16, seed=0):
    return r2(conditional_decorrelation(a, b, labels, generator=generator(seed), n_projected=n_projected))


def random_map(n_features, seed):
    return torch.randn(n_features, n_features, dtype=torch.float64, generator=generator(seed))


def test_within_classes_an_invertible_map_is_found_out_and_changes_nothing():
    labels = torch.arange(64) % 4
    z, other = features(0, 64, 8), 0.5 * features(0, 64, 8) + features(1, 64, 8)
    means = 100 * torch.randn(4, 8, dtype=torch.float64, generator=generator(2))[labels]
    mapped = z @ random_map(8, 3) + means
    assert conditional_r2(z, mapped, labels) > 1 - 1e-4
    reference = conditional_r2(z, other, labels)
    assert 0.2 < reference < 0.8
    for left, right in ((mapped, other), (z, other @ random_map(8, 4) - means), (other, z)):
        assert conditional_r2(left, right, labels) == pytest.approx(reference, abs=1e-6)


def test_it_is_the_mean_squared_canonical_correlation_within_classes():
    labels = torch.arange(90) % 3
    z, other = features(0, 90, 5), features(0, 90, 5) + features(1, 90, 5)
    left, right = (x.numpy().copy() for x in (z, other))
    for side in (left, right):
        for label in range(3):
            side[labels == label] -= side[labels == label].mean(axis=0)
    bases = [np.linalg.svd(side, full_matrices=False)[0] for side in (left, right)]
    expected = np.mean(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False) ** 2)
    assert conditional_r2(z, other, labels) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("n_features", [16, 64])
def test_independent_features_have_the_floor_of_their_batch_and_classes(n_features):
    labels = torch.arange(64) % 4
    found = [
        conditional_r2(features(2 * s, 64, n_features), features(2 * s + 1, 64, n_features), labels, seed=s)
        for s in range(60)
    ]
    assert np.mean(found) == pytest.approx(16 / 60, abs=0.01)


def test_a_direction_at_the_limit_of_rounding_counts_half():
    """Beside one of variance 1, that is one of variance 1e-9 / 2."""
    pair, _ = torch.linalg.qr(features(0, 64, 2) - features(0, 64, 2).mean(dim=0))
    z = pair * torch.tensor([1.0, (1e-9 / 2) ** 0.5], dtype=torch.float64)
    assert conditional_r2(z, pair, torch.zeros(64)) == pytest.approx((1 + 1 / 2) / 2, abs=1e-4)


def test_a_huge_direction_does_not_lower_it_and_classes_alone_do_not_raise_it():
    labels = torch.arange(400) % 4
    base, nuisance = features(0, 400, 8), 1000.0 * features(1, 400, 1)
    shared = base + 0.1 * features(2, 400, 8)
    alone, beside = (
        conditional_r2(z, base, labels, n_projected=16) for z in (shared, torch.cat([shared, nuisance], 1))
    )
    assert alone > 0.95 and beside > alone - 1e-3
    inflated = shared + nuisance * torch.ones(1, 8, dtype=torch.float64)
    assert conditional_r2(inflated, base, labels) > 7 / 8 * alone - 0.05
    of_class = 10 * torch.eye(4, dtype=torch.float64)[labels]
    one, other = of_class + features(3, 400, 4), of_class + features(4, 400, 4)
    assert conditional_r2(one, other, labels) < 0.05
    assert r2(decorrelation(one, other, generator=generator(), n_projected=4)) > 0.5


@pytest.mark.parametrize("n_projected", [3, 8])
def test_the_conditional_gradient_is_the_right_one(n_projected):
    labels = torch.arange(24) % 3
    stored = [features(1, 24, 5), features(2, 24, 6)]

    def loss(z):
        return conditional_decorrelation(z, stored, labels, generator=generator(3), n_projected=n_projected)

    assert torch.autograd.gradcheck(loss, features(0, 24, 5).requires_grad_())


@pytest.mark.parametrize("kind", ["zero", "constant", "of the class", "rank 3", "repeated columns", "huge", "tiny"])
def test_conditional_gradients_stay_finite_for_deficient_features(kind):
    z, labels = features(0, 80), torch.arange(80) % 4
    z = {
        "zero": torch.zeros_like(z),
        "constant": torch.ones_like(z) * 7,
        "of the class": z[:4][labels],
        "rank 3": z[:, :3] @ torch.randn(3, 64, dtype=torch.float64, generator=generator(2)),
        "repeated columns": z[:, :8].repeat(1, 8),
        "huge": z * 1e6,
        "tiny": z * 1e-6,
    }[kind]
    for n_projected in (16, 64):
        ours = z.float().requires_grad_()
        others = [z.float(), features(4, 80).float()]
        loss = conditional_decorrelation(ours, others, labels, generator=generator(), n_projected=n_projected)
        loss.backward()
        assert torch.isfinite(loss) and torch.isfinite(ours.grad).all()


def test_conditional_batches_need_a_record_more_than_directions_and_classes():
    assert fewest_conditional_records(64, 4) == 21 and fewest_conditional_records(3, 4) == 8
    labels = torch.arange(21) % 4
    assert conditional_decorrelation(features(0, 20), features(1, 20), labels[:20]) == 0
    assert conditional_decorrelation(features(0, 21), features(1, 21), labels) > 0
    with pytest.raises(MemberError, match="a label for each of 21 records"):
        conditional_decorrelation(features(0, 21), features(1, 21), labels[:20])
