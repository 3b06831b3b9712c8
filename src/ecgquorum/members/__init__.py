"""One network: what every member can do, the paper's, a compact one, and the bands they hear."""

from ecgquorum.members.bands import BandMask, bands_from, rings
from ecgquorum.members.building import MEMBERS, build_member
from ecgquorum.members.compact import CompactMember
from ecgquorum.members.dilated import DilatedMember
from ecgquorum.members.freezing import frozen
from ecgquorum.members.member import Member, live_span

__all__ = [
    "MEMBERS",
    "BandMask",
    "CompactMember",
    "DilatedMember",
    "Member",
    "bands_from",
    "build_member",
    "frozen",
    "live_span",
    "rings",
]
