"""Networks: the compact one, the paper's, the band filter, and the contract that any `nn.Module` can meet."""

from ecgquorum.members.band_filter import BandFilter, Bands, FilteredMember, parse_bands, rings
from ecgquorum.members.compact import CompactMember
from ecgquorum.members.contract import (
    count_features,
    embed,
    forward_with_features,
    last_linear,
    norm_layers,
    norm_output,
    valid_span,
)
from ecgquorum.members.dilated import DilatedMember
from ecgquorum.members.kernels.freezing import evaluation_mode, freeze
from ecgquorum.members.registry import MEMBERS, MemberFactory, build_member, check_options

__all__ = [
    "MEMBERS",
    "BandFilter",
    "Bands",
    "CompactMember",
    "DilatedMember",
    "FilteredMember",
    "MemberFactory",
    "build_member",
    "check_options",
    "count_features",
    "embed",
    "evaluation_mode",
    "forward_with_features",
    "freeze",
    "last_linear",
    "norm_layers",
    "norm_output",
    "parse_bands",
    "rings",
    "valid_span",
]
