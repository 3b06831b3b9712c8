"""ECGs as NumPy arrays: `.npy` with samples alone, `.npz` with `signal`, `rate_hz`, `leads` and `units`."""

import io
import math
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples, one_line

_FILE_BYTES = 256 << 20
_MOST_LEADS = 64


@reader(".npy")
def read_npy(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read samples (lead, time) or (time,); rate, leads and units come from the defaults."""
    where = file.path
    signal = _orient(where, _parse_array(where, file.read(_FILE_BYTES)))
    leads, rate_hz, factor = defaults.lead_names(where, len(signal)), defaults.rate(where), defaults.millivolts(where)
    unit = defaults.units or ""
    return Recording(file.stem, as_samples(signal * factor), rate_hz, leads, source=where, unit=unit)


@reader(".npz")
def read_npz(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read `signal`, with `rate_hz`, `leads` and `units` from the file or else from the defaults."""
    where = file.path
    content = file.read(_FILE_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if "signal" not in parts:
                raise RecordingError(f"{where}: expected an array called signal, found {', '.join(parts) or 'nothing'}")
            arrays = {
                key: _parse_array(where, _extract(where, archive, parts[key]))
                for key in ("signal", "rate_hz", "leads", "units")
                if key in parts
            }
    except RecordingError:
        raise
    except Exception as error:  # what a damaged archive makes zipfile raise is not documented
        raise RecordingError(f"{where}: expected an .npz file, found: {one_line(error)}") from error
    signal = _orient(where, arrays["signal"])
    rate_hz = defaults.rate(where, _number(where, arrays["rate_hz"]) if "rate_hz" in arrays else None)
    units = str(arrays["units"].reshape(-1)[0]) if "units" in arrays and arrays["units"].size else None
    leads = (
        tuple(map(str, arrays["leads"].reshape(-1))) if "leads" in arrays else defaults.lead_names(where, len(signal))
    )
    factor = defaults.millivolts(where, units)
    unit = units if units is not None else defaults.units or ""
    return Recording(file.stem, as_samples(signal * factor), rate_hz, leads, source=where, unit=unit)


def _extract(where: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > _FILE_BYTES:
        raise RecordingError(f"{where}: expected at most {_FILE_BYTES} bytes, found {info.file_size}")
    with archive.open(info) as part:
        return part.read(_FILE_BYTES)


def _parse_array(where: str, content: bytes) -> NDArray[Any]:
    """Parse an .npy file of numbers or text whose size matches its header; no objects."""
    file = io.BytesIO(content)
    try:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(file)
    except Exception as error:
        raise RecordingError(f"{where}: expected a NumPy array, found: {one_line(error)}") from error
    count = math.prod(map(int, shape))
    n_bytes = count * dtype.itemsize
    if dtype.kind not in "iufbU" or n_bytes > len(content) - file.tell() or (dtype.itemsize == 0 and count):
        raise RecordingError(
            f"{where}: expected {n_bytes} bytes of numbers, found {len(content) - file.tell()} of {dtype}"
        )
    flat = np.frombuffer(content, dtype=dtype, count=count, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def _orient(where: str, found: NDArray[Any]) -> NDArray[np.float64]:
    """(lead, time) from either orientation: there are more samples than leads."""
    if found.dtype.kind not in "iuf" or found.ndim not in (1, 2) or not found.size:
        raise RecordingError(f"{where}: expected samples as (lead, time), found {found.dtype} of shape {found.shape}")
    with np.errstate(invalid="ignore"):
        signal = np.atleast_2d(found).astype(np.float64)
    signal = signal.T if signal.shape[0] > signal.shape[1] else signal
    if len(signal) > _MOST_LEADS:
        raise RecordingError(f"{where}: expected at most {_MOST_LEADS} leads, found {len(signal)}")
    return signal


def _number(where: str, found: NDArray[Any]) -> float:
    if found.size != 1 or found.dtype.kind not in "iuf":
        raise RecordingError(f"{where}: expected rate_hz to be one number, found {found.dtype} of shape {found.shape}")
    return float(found.reshape(-1)[0])
