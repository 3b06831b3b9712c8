"""The share of a batch that each rank has, and layers that know of the others; `test_ranks.py` runs several ranks."""

import pytest
import torch
from torch import nn

from ecgquorum.parallel import distributed
from ecgquorum.parallel.batch_layers import shard_network


def test_layers_are_restored_after_the_block():
    network = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    keys = list(network.state_dict())
    with shard_network(network, distributed.Share(4, 0, 2, 1)):
        assert all("forward" in layer.__dict__ for layer in network) and list(network.state_dict()) == keys
    assert not any("forward" in layer.__dict__ for layer in network)


def test_a_single_process_is_one_rank():
    share = distributed.shard_batch(5)
    x = torch.randn(5, 2)
    assert (distributed.rank(), distributed.n_ranks(), share.weight, share.copies) == (0, 1, 1.0, 1)
    assert torch.equal(x[share.rows()], x) and torch.equal(share.gather(x), x)
    norm = nn.BatchNorm1d(2)
    with shard_network(norm, share):
        assert "forward" not in norm.__dict__, "one process pays nothing"
    assert distributed.totals(1.5, 2.0) == [1.5, 2.0]
    assert distributed.is_first() and distributed.is_first_to_fail()


@pytest.mark.parametrize(("n_records", "n_ranks"), [(7, 2), (16, 4), (5, 5), (3, 8)])
def test_all_recordings_are_distributed_evenly(monkeypatch, n_records, n_ranks):
    monkeypatch.setattr(distributed, "n_ranks", lambda: n_ranks)
    shares = []
    for rank in range(n_ranks):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        shares.append(distributed.shard_batch(n_records))
    assert sum(share.weight / share.copies for share in shares) == pytest.approx(1)
    rows = [list(range(n_records)[share.rows()]) for share in shares]
    if n_records >= n_ranks:
        assert sorted(row for some in rows for row in some) == list(range(n_records))
        assert max(map(len, rows)) - min(map(len, rows)) <= 1
        attacked = [len(range(n_records)[share.rows(n_records // 2)]) for share in shares]
        assert sum(attacked) == n_records // 2 and max(attacked) - min(attacked) <= 1
    else:
        assert rows == [list(range(n_records))] * n_ranks
