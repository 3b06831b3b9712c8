"""One network: what every member can do, the paper's, a compact one, and the bands they hear."""

from ecgquorum.members.band_filter import BandFilter, bands_from, rings
from ecgquorum.members.compact import CompactMember
from ecgquorum.members.dilated import DilatedMember
from ecgquorum.members.kernels.freezing import frozen
from ecgquorum.members.member import Member, valid_span
from ecgquorum.members.registry import MEMBERS, build_member

__all__ = [
    "MEMBERS",
    "BandFilter",
    "CompactMember",
    "DilatedMember",
    "Member",
    "bands_from",
    "build_member",
    "frozen",
    "rings",
    "valid_span",
]
