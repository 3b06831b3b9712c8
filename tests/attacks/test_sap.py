"""SAP: one kernel equals the mean of 25 convolutions, and changes are smooth."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from ecgquorum.attacks import CPSC_KERNELS, PGD, PHYSIONET_KERNELS, SAP
from ecgquorum.attacks.registry import build_attack
from ecgquorum.attacks.sap import smooth
from ecgquorum.cohorts import Batch
from ecgquorum.errors import AttackError
from ecgquorum.preprocessing import InputSpec


def gaussian(size, width):
    place = torch.arange(size).double() - size // 2
    bell = torch.exp(-(place**2) / (2 * width**2))
    return bell / bell.sum()


@pytest.mark.parametrize(("sizes", "widths"), [PHYSIONET_KERNELS, CPSC_KERNELS])
@pytest.mark.parametrize("pairs", [False, True])
def test_the_mean_of_convolutions_is_one_convolution(sizes, widths, pairs):
    theta = torch.randn(2, 3, 200, dtype=torch.float64)
    combinations = list(zip(sizes, widths, strict=True) if pairs else itertools.product(sizes, widths))
    assert len(combinations) == (5 if pairs else 25)
    each = [
        F.conv1d(theta, gaussian(size, width).expand(3, 1, -1), padding=size // 2, groups=3)
        for size, width in combinations
    ]
    kernel = SAP(1.0, sizes=sizes, widths=widths, pairs=pairs).kernel()
    torch.testing.assert_close(smooth(theta, kernel), torch.stack(each).mean(dim=0))
    assert kernel.sum() == pytest.approx(1)


@pytest.mark.parametrize("from_pgd", [False, True])
def test_its_changes_are_smoother_than_those_of_pgd(tiny_ensemble, tiny_cohort, from_pgd):
    batch: Batch = tiny_cohort.batch(tiny_cohort.part("tune"), tiny_ensemble.input)

    def roughness(attack):
        change = (attack(tiny_ensemble, batch.signal, batch.label, batch.valid) - batch.signal)[..., 200:-200]
        return (change.diff(dim=2).square().mean() / change.square().mean()).item()

    assert roughness(SAP(50.0, from_pgd=from_pgd, n_steps=10)) < 0.2 * roughness(PGD(50.0))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sizes": (4,)}, "odd numbers of samples, found \\(4,\\)"),
        ({"sizes": ()}, "odd numbers"),
        ({"sizes": (-3,)}, "odd numbers"),
        ({"widths": ()}, "widths: expected numbers above 0"),
        ({"widths": (0.0,)}, "widths: expected numbers above 0"),
        ({"widths": (float("inf"),)}, "widths: expected numbers above 0"),
        ({"pairs": True, "sizes": (3, 5), "widths": (1.0,)}, "as many sizes as widths"),
    ],
)
def test_kernels_that_cannot_be_are_refused(options, reason):
    with pytest.raises(AttackError, match=reason):
        SAP(1.0, **options)


def test_by_name_it_has_the_kernels_of_the_papers_data_for_each_scaling():
    for scaling, kernels in (("unit", CPSC_KERNELS), ("microvolt", PHYSIONET_KERNELS)):
        attack = build_attack("sap", 0.1, {}, InputSpec(("ECG",), 300.0, scaling))
        assert (attack.sizes, attack.widths) == kernels
    assert build_attack("sap", 0.1, {"sizes": (3,)}, InputSpec(("ECG",), 300.0, "unit")).sizes == (3,)
