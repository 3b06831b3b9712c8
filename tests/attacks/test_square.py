"""Square: segments of +-epsilon within the valid samples of each recording."""

import torch

from ecgquorum.attacks import Square


def test_every_query_changes_valid_samples_and_none_but_these():
    """Recordings of different lengths in a long window, one of them in two stretches."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 2, 400, generator=generator)
    valid = torch.zeros(4, 1, 400, dtype=torch.bool)
    valid[0, :, 150:250] = valid[1, :, :400] = valid[2, :, 390:] = True
    valid[3, :, :20] = valid[3, :, 380:] = True
    x = x * valid
    seen = []

    def model(tried):  # to which no query makes a difference, so that each changes the random start
        seen.append(tried.clone())
        return torch.tensor([[3.0, 2.0, 1.0]]).expand(4, 3)

    moved = Square(1.0, n_queries=60)(model, x, torch.tensor([0, 1, 2, 0]), valid)
    assert len(seen) == 61
    assert all(torch.equal(tried * ~valid, x * ~valid) for tried in [*seen, moved])
    changed = torch.stack([((tried - seen[0]).abs() > 1e-6).any(dim=1) for tried in seen[1:]])  # query, record, time
    # a short segment may have its sign already on both leads, one time in four
    assert (changed.any(dim=2).double().mean(dim=0) > 0.6).all()
    assert (changed.any(dim=0).sum(dim=1) > 0.6 * valid.sum(dim=(1, 2))).all()
    assert (changed[:3].sum(dim=2) < 0.5 * valid.sum(dim=(1, 2))).all()


def test_it_finds_the_weak_stretch_of_a_short_recording():
    """The model reads the mean of 30 samples in the middle of a window of 600."""

    def model(x):
        mean = x[:, 0, 285:315].mean(dim=1)
        return torch.stack([mean, -mean], dim=1)

    x = torch.zeros(6, 1, 600)
    valid = torch.zeros(6, 1, 600, dtype=torch.bool)
    valid[:, :, 270:330] = True
    moved = Square(1.0, n_queries=100)(model, x, torch.zeros(6, dtype=torch.long), valid)
    assert (moved[:, 0, 285:315].mean(dim=1) < -0.8).all()


def test_segments_shrink_from_the_share_by_half_every_eighth():
    """w = share * 0.5 ** (8 q / Q) of the valid samples; seen as what query q changes of the random start."""
    n_queries, n_samples, seen = 40, 1000, []

    def model(tried):
        seen.append(tried.clone())
        return torch.tensor([[3.0, 2.0, 1.0]]).expand(len(tried), 3)

    Square(1.0, n_queries=n_queries, share=0.4)(model, torch.zeros(64, 1, n_samples), torch.zeros(64, dtype=torch.long))
    for query, tried in enumerate(seen[1:]):
        width = max(1, round(0.4 * 0.5 ** (8 * query / n_queries) * n_samples))
        changed = (tried - seen[0])[:, 0].abs() > 1e-6
        spans = [(row.nonzero().max() - row.nonzero().min() + 1).item() for row in changed if row.any()]
        assert 0.9 * width - 1 <= max(spans) <= width
