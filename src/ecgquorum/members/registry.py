"""From a recipe to a network."""

import torch

from ecgquorum._internal.seeds import derive_seed
from ecgquorum.members.band_filter import bands_from
from ecgquorum.members.compact import CompactMember
from ecgquorum.members.dilated import DilatedMember
from ecgquorum.members.member import Member
from ecgquorum.recipes import Recipe

MEMBERS: dict[str, type[CompactMember] | type[DilatedMember]] = {
    "compact": CompactMember,
    "dilated": DilatedMember,
}
"""Every kind of member that a recipe can name."""


def build_member(recipe: Recipe, index: int, *, n_leads: int, n_classes: int, rate_hz: float) -> Member:
    """The recipe's member number `index`, freshly initialised from the recipe's seed.

    PyTorch initialises from its global generator; that is seeded for the moment and given back as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(recipe.seed, "member", index, "weights"))
        return MEMBERS[recipe.member.kind](
            n_leads,
            n_classes,
            rate_hz,
            width=recipe.member.width,
            dropout=recipe.member.dropout,
            bands=bands_from(recipe.bands_of(index), rate_hz),
        )
