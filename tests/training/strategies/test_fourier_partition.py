"""Fourier partition: which bands each member sees."""

import pytest
import torch
from torch import nn

from ecgquorum.errors import EcgQuorumError
from ecgquorum.members import FilteredMember
from ecgquorum.strategies import FourierPartition


def test_the_first_member_has_its_own_bands_and_the_others_take_turns():
    assert [FourierPartition().bands_of(k) for k in range(5)] == [
        "all",
        "rings:even",
        "rings:odd",
        "rings:even",
        "rings:odd",
    ]
    assert [FourierPartition(bands=[[[0, 15]]]).bands_of(k) for k in range(2)] == [((0.0, 15.0),)] * 2


def test_members_are_put_behind_their_band_filter():
    strategy, net = FourierPartition(bands=("all", ((0.0, 20.0),))), nn.Flatten()
    assert strategy.transform_input(net, 0, 200.0) is net
    filtered = strategy.transform_input(net, 1, 200.0)
    assert isinstance(filtered, FilteredMember) and filtered.network is net
    t = torch.arange(400) / 200.0
    slow, fast = (torch.sin(2 * torch.pi * hz * t)[None, None] for hz in (5.0, 50.0))
    assert filtered(slow + fast).view(1, 1, -1) == pytest.approx(slow, abs=0.05)
    with pytest.raises(EcgQuorumError, match="half the sampling rate"):
        FourierPartition(bands=(((150.0, 160.0),),)).transform_input(net, 0, 200.0)


def test_a_member_that_sees_everything_is_shared_with_the_baseline():
    strategy = FourierPartition()
    assert strategy.describe(0) is None
    assert strategy.describe(1) == {"bands": "rings:even"} == strategy.describe(3)
