"""AliveCor ATC files: blocks of an identifier, a length, data and a checksum; one lead or six."""

import struct

import numpy as np

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, join_text
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples

_FILE_BYTES = 64 << 20
_MAGIC, _FIRST_BLOCK = b"ALIVE", 12
_BLOCK, _FORMAT = struct.Struct("<4sI"), struct.Struct("<BHHB")
_CHECKSUM_BYTES = 4
_SIXTEEN_BIT = 1
_NANOVOLTS_IN_MV = 1e6
_LEADS = {b"ecg ": "I", b"ecg2": "II", b"ecg3": "III", b"ecg4": "aVR", b"ecg5": "aVL", b"ecg6": "aVF"}
_INFO = {"date": (0, 32), "hardware": (180, 212)}


def is_atc(head: bytes) -> bool:
    """Whether a file begins like an ATC file."""
    return head.startswith(_MAGIC)


@reader(".atc", recognise=is_atc, any_suffix=True)
def read_atc(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read the leads of an ATC file: 16-bit samples, with rate and resolution in the block `fmt`."""
    where = file.path
    blocks = _blocks(where, file.read(_FILE_BYTES))
    if len(blocks.get(b"fmt ", b"")) < _FORMAT.size:
        raise RecordingError(f"{where}: expected an ATC file with a format block, found none")
    kind, rate_hz, nanovolts, _ = _FORMAT.unpack_from(blocks[b"fmt "])
    if kind != _SIXTEEN_BIT or not nanovolts:
        raise RecordingError(f"{where}: expected 16-bit samples with a resolution, found format {kind}, {nanovolts} nV")
    leads = {name: blocks[key] for key, name in _LEADS.items() if key in blocks}
    lengths = {len(samples) // 2 for samples in leads.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise RecordingError(f"{where}: expected leads of one length, found {sorted(lengths) or 'none'}")
    counts = np.stack([np.frombuffer(samples, dtype="<i2", count=len(samples) // 2) for samples in leads.values()])
    return Recording(
        file.stem,
        as_samples(counts * (nanovolts / _NANOVOLTS_IN_MV)),
        float(rate_hz),
        defaults.leads_of(where, tuple(leads)),
        _acquisition(blocks.get(b"info", b"")),
        source=where,
        unit="nV",
    )


def _blocks(where: str, content: bytes) -> dict[bytes, bytes]:
    """Identifier -> data of every block; raises if one is cut short or its checksum, the sum of its bytes, is wrong."""
    if not is_atc(content):
        raise RecordingError(f"{where}: expected an ATC file, found another")
    blocks: dict[bytes, bytes] = {}
    position = _FIRST_BLOCK
    while position < len(content):
        start = position + _BLOCK.size
        name, length = _BLOCK.unpack_from(content, position) if start <= len(content) else (b"", len(content))
        stop = start + length
        if stop + _CHECKSUM_BYTES > len(content):
            raise RecordingError(f"{where}: expected whole blocks, found the file cut short")
        total = int(np.frombuffer(content[position:stop], dtype=np.uint8).sum(dtype=np.uint64)) & 0xFFFFFFFF
        if total != int.from_bytes(content[stop : stop + _CHECKSUM_BYTES], "little"):
            shown = name.decode("latin-1").strip()
            raise RecordingError(f"{where}: the checksum of its block {shown!r} is wrong; the file is damaged")
        blocks.setdefault(name, content[start:stop])
        position = stop + _CHECKSUM_BYTES
    return blocks


def _acquisition(info: bytes) -> Acquisition:
    text = {key: info[start:stop].split(b"\0")[0].decode("latin-1") for key, (start, stop) in _INFO.items()}
    return Acquisition(time=text["date"], device=join_text("AliveCor", text["hardware"]))
