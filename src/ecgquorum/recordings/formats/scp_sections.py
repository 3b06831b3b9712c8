"""Check the lead definitions of an SCP-ECG file against its size, and correct those that count samples from 0."""

import binascii
import struct

from ecgquorum.errors import RecordingError

_PREAMBLE, _HEADER = 6, 16
_POINTER, _DEFINITION = struct.Struct("<HII"), struct.Struct("<IIB")
_CRC_START = 0xFFFF


def check_scp(where: str, content: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The file as a parser of EN 1064 expects it, and notes about what was corrected.

    The standard numbers samples from 1. Some writers number them from 0 and state the sample after the last as the end:
    0 to 10,000 for 10,000 samples. With the start 1, that is right.
    """
    try:
        sections = _sections(content)
        leads, rhythm = sections.get(3), sections.get(6)
        if leads is None or rhythm is None:
            raise RecordingError(f"{where}: expected an SCP-ECG file with rhythm data, found none")
        starts = range(leads[0] + _HEADER + 2, leads[0] + _HEADER + 2 + 9 * content[leads[0] + _HEADER], 9)
        definitions = [_DEFINITION.unpack_from(content, place) for place in starts]
    except (struct.error, IndexError) as error:
        raise RecordingError(f"{where}: expected an SCP-ECG file, found it damaged") from error
    declared = sum(max(0, stop - start + 1) for start, stop, _ in definitions)
    if declared > 8 * rhythm[1]:  # a sample takes a bit or more
        raise RecordingError(
            f"{where}: expected samples that fit the {rhythm[1]} bytes of its rhythm data, found {declared} declared"
        )
    if not definitions or any(start for start, _, _ in definitions):
        return content, ()
    changed = bytearray(content)
    for place in starts:
        changed[place : place + 4] = (1).to_bytes(4, "little")
    _update_crc(content, changed, leads[0], leads[1])
    _update_crc(content, changed, 0, len(content))
    return bytes(changed), ("its lead definitions count samples from 0, not from 1 as SCP-ECG demands; read so",)


def _sections(content: bytes) -> dict[int, tuple[int, int]]:
    """Number of each section -> (where it begins, its bytes), as section 0 lists them."""
    length = int.from_bytes(content[10:14], "little")
    end = min(_PREAMBLE + length, len(content))
    pointers = (_POINTER.unpack_from(content, at) for at in range(_PREAMBLE + _HEADER, end - _POINTER.size + 1, 10))
    return {
        number: (index - 1, size)
        for number, size, index in pointers
        if index and size > _HEADER and index - 1 + size <= len(content)
    }


def _update_crc(before: bytes, after: bytearray, start: int, size: int) -> None:
    """Correct the checksum of changed bytes, unless it was wrong before: then it shows damage."""
    body = slice(start + 2, start + size)
    if int.from_bytes(before[start : start + 2], "little") == binascii.crc_hqx(before[body], _CRC_START):
        after[start : start + 2] = binascii.crc_hqx(after[body], _CRC_START).to_bytes(2, "little")
