"""MATLAB files of the original CPSC 2018 release: a struct `ECG` with `data` (12 leads, 500 Hz, millivolts)."""

import io
import struct
import zlib
from pathlib import PurePosixPath

import numpy as np
from scipy.io import loadmat

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.leads import STANDARD_LEADS
from ecgquorum.recordings.recording import Recording

CPSC_RATE_HZ = 500.0
_FILE_BYTES = 64 << 20
_UNPACKED_BYTES = 512 << 20
_COMPRESSED = 15


def read_cpsc_mat(tree: FileTree, name: str) -> Recording:
    """Read the `.mat` file `name`."""
    where = tree.where(name)
    content = tree.read(name, _FILE_BYTES)
    _check_unpacked_size(where, content)
    try:
        data = np.asarray(loadmat(io.BytesIO(content))["ECG"]["data"][0, 0], dtype=np.float32)
    except Exception as error:
        raise RecordingError(
            f"{where}: expected a MATLAB struct ECG with a field data, found: {type(error).__name__}: {error}"
        ) from error
    if data.ndim != 2 or len(data) != len(STANDARD_LEADS):
        raise RecordingError(f"{where}: expected ECG.data as 12 leads x time, found the shape {data.shape}")
    return Recording(PurePosixPath(name).stem, data, CPSC_RATE_HZ, STANDARD_LEADS, source=where)


def _check_unpacked_size(where: str, content: bytes) -> None:
    """Walk the file's compressed elements (MATLAB level 5) and refuse one that swells beyond reason."""
    position, unpacked = 128, 0
    while position + 8 <= len(content):
        kind, size = struct.unpack_from("<II", content, position)
        if kind == _COMPRESSED:
            unpacked += _inflated_size(content[position + 8 : position + 8 + size], _UNPACKED_BYTES)
            if unpacked > _UNPACKED_BYTES:
                raise RecordingError(f"{where}: expected at most {_UNPACKED_BYTES} bytes unpacked, found more")
        position += 8 + size


def _inflated_size(compressed: bytes, limit: int) -> int:
    """How many bytes `compressed` unpacks to, without keeping them; stops soon after `limit`."""
    inflate, total, rest = zlib.decompressobj(), 0, compressed
    try:
        while rest and total <= limit:
            total += len(inflate.decompress(rest, 1 << 20))
            rest = inflate.unconsumed_tail
    except zlib.error:
        pass  # the parser will say what is wrong with it
    return total
