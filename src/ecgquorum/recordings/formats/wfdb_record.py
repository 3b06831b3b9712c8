"""WFDB records: a `.hea` header with its `.dat` or `.mat` signal files, in a folder or in a zip archive.

The `wfdb` package parses and decodes. A header is checked first against the sizes of its signal files, so that a
wrong one cannot make it allocate memory for samples that do not exist.
"""

import tempfile
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import FileTree, OpenedFile
from ecgquorum.recordings.leads import UNNAMED_LEAD
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import FASTEST_RATE_HZ, SLOWEST_RATE_HZ, Recording, one_line
from ecgquorum.recordings.units import common_unit, millivolts_in

_BITS_PER_SAMPLE = {
    "80": 8,
    "16": 16,
    "61": 16,
    "160": 16,
    "24": 24,
    "32": 32,
    "212": 12,
    "310": 32 / 3,
    "311": 32 / 3,
}
_HEADER_BYTES = 1 << 20
_DECODED_BYTES = 2 << 30
_LONGEST_SKEW_S = 10.0
_MARGIN = 64  # decoders of packed formats may read a few bytes more
_MISSING_16_BIT = -(1 << 15)


@reader(".hea")
def read_wfdb(file: OpenedFile, _: FileDefaults) -> Recording:
    """Read a WFDB record by its header; the header states rate, leads and units itself.

    Samples are converted to millivolts and lead names to their standard spelling; signals in other units than volts
    (respiration, pressure) are left out. Codes of a `#Dx:` comment become the recording's labels.
    """
    tree, name, where = file.tree, file.name, file.path
    stem = name.removesuffix(".hea")
    content = file.read(_HEADER_BYTES)
    header = _parse_header(where, content)
    limits = _check(tree, stem, header)
    voltages = [i for i, unit in enumerate(header.units) if millivolts_in(unit) is not None]
    if not voltages:
        raise RecordingError(
            f"{where}: expected at least one signal in volts, millivolts or microvolts, "
            f"found the units {', '.join(header.units)}"
        )
    if _is_plain_16_bit(header):
        ((inner, limit),) = limits.items()
        samples = tree.first(inner, limit)
        if len(samples) < limit - _MARGIN:
            raise RecordingError(f"{tree.where(inner)}: expected {limit - _MARGIN} bytes, found {len(samples)}")
        signal = _decode_16_bit(header, samples)[voltages]
    else:
        with tree.on_disk({name: len(content), **limits}) as folder:
            path = str(folder / PurePosixPath(stem).name)
            signal = _call_wfdb(where, "rdrecord", path, channels=voltages, return_res=32).p_signal.T
    factors = np.array([millivolts_in(header.units[i]) for i in voltages], dtype=np.float32)
    if not (factors == 1).all():
        signal = signal * factors[:, None]
    return Recording(
        id=PurePosixPath(stem).name,
        signal=signal,
        rate_hz=float(header.fs),
        leads=tuple(header.sig_name[i] or UNNAMED_LEAD for i in voltages),
        acquisition=_acquisition(header),
        labels=_diagnoses(header.comments),
        source=where,
        unit=common_unit(header.units[i] for i in voltages),
    )


def _is_plain_16_bit(header: Any) -> bool:
    """Whether all signals lie interleaved in one file of 16-bit samples, as in both data sets."""
    return (
        set(header.fmt) == {"16"}
        and len(set(header.file_name)) == 1
        and set(header.samps_per_frame) <= {1, None}
        and not any(header.skew)
    )


def _decode_16_bit(header: Any, content: bytes) -> NDArray[np.float32]:
    """(lead, time) in physical units: the same as `wfdb.rdrecord`, without parsing the header again."""
    n_values = header.n_sig * header.sig_len
    raw = np.frombuffer(content, dtype="<i2", count=n_values, offset=header.byte_offset[0] or 0)
    raw = raw.reshape(header.sig_len, header.n_sig).T
    signal: NDArray[np.float32] = (
        (raw - np.array(header.baseline)[:, None]) / np.array(header.adc_gain)[:, None]
    ).astype(np.float32)
    signal[raw == _MISSING_16_BIT] = np.nan
    return signal


def _parse_header(where: str, content: bytes) -> Any:
    """The header's fields; a micro sign, which the `wfdb` package would drop from its unit, becomes a u."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    with tempfile.TemporaryDirectory(prefix="ecgquorum-") as folder:
        path = Path(folder) / "record"
        path.with_suffix(".hea").write_text(text.replace("\u00b5", "u").replace("\u03bc", "u"))
        return _call_wfdb(where, "rdheader", str(path))


def _call_wfdb(where: str, function: str, path: str, **options: Any) -> Any:
    """Call a function of the `wfdb` package; any error of it becomes a `RecordingError` that names the file."""
    import wfdb  # here, so that other formats do not wait for it

    try:
        return getattr(wfdb, function)(path, **options)
    except Exception as error:
        raise RecordingError(f"{where}: expected a readable WFDB record, found: {one_line(error)}") from error


def _check(tree: FileTree, stem: str, header: Any) -> dict[str, int]:
    """Raise if the header does not match its signal files; return how many bytes of each file it needs."""
    where = tree.where(f"{stem}.hea")
    if getattr(header, "n_seg", None) is not None:
        raise RecordingError(f"{where}: expected one segment, found a multi-segment record; read its parts one by one")
    n_lines = len(header.file_name or [])
    if not header.n_sig or n_lines != header.n_sig:
        raise RecordingError(f"{where}: expected {header.n_sig} signal lines, at least one, found {n_lines}")
    if not header.fs or not SLOWEST_RATE_HZ <= header.fs <= FASTEST_RATE_HZ:
        raise RecordingError(
            f"{where}: expected a sampling rate from {SLOWEST_RATE_HZ:g} to {FASTEST_RATE_HZ:g} Hz, found {header.fs}"
        )
    if any(skew and skew > _LONGEST_SKEW_S * header.fs for skew in header.skew):
        raise RecordingError(f"{where}: expected signals skewed by at most {_LONGEST_SKEW_S:g} s, found more")

    signals_of: dict[str, list[int]] = defaultdict(list)
    for index, file_name in enumerate(header.file_name):
        signals_of[file_name].append(index)
    limits = {}
    for file_name, signals in signals_of.items():
        if PurePosixPath(file_name).name != file_name or file_name in (".", "..") or "\\" in file_name:
            raise RecordingError(f"{where}: expected a signal file beside the header, found the path {file_name!r}")
        inner = (PurePosixPath(stem).parent / file_name).as_posix()
        found = tree.size(inner)
        if found is None:
            raise RecordingError(f"{where}: expected its signal file {file_name} beside it, found none")
        formats = {str(header.fmt[i]) for i in signals}
        if len(formats) != 1 or not formats <= _BITS_PER_SAMPLE.keys():
            raise RecordingError(
                f"{where}: expected one signal format of {', '.join(_BITS_PER_SAMPLE)} for {file_name}, "
                f"found {', '.join(sorted(formats))}"
            )
        bits = _BITS_PER_SAMPLE[formats.pop()]
        offset = header.byte_offset[signals[0]] or 0
        per_frame = sum(header.samps_per_frame[i] or 1 for i in signals)
        if header.sig_len is None:
            header.sig_len = max(0, int((found - offset) * 8 / bits) // per_frame)
        expected = offset + int(per_frame * header.sig_len * bits / 8)
        if found < expected:
            raise RecordingError(
                f"{where}: expected {expected} bytes in {file_name} ({len(signals)} signals x {header.sig_len} "
                f"samples, {bits:g} bits each, after {offset} bytes), found {found}; the file is truncated or "
                "the header is wrong"
            )
        limits[inner] = expected + _MARGIN
    if not header.sig_len:
        raise RecordingError(f"{where}: expected samples, found a length of 0")
    decoded = 4 * header.n_sig * header.sig_len * max(header.samps_per_frame)
    if decoded > _DECODED_BYTES:
        raise RecordingError(
            f"{where}: expected at most {_DECODED_BYTES} bytes of samples, found {decoded}; split the record"
        )
    return limits


def _diagnoses(comments: list[str]) -> tuple[str, ...]:
    codes = _facts(comments).get("dx", "")
    return tuple(code.strip() for code in codes.split(",") if code.strip())


def _facts(comments: list[str]) -> dict[str, str]:
    """What comments of the form `#Key: value` say, by key in lower case; of several alike, the first."""
    parts = [comment.partition(":") for comment in comments]
    return {key.strip().lower(): value.strip() for key, _, value in reversed(parts)}


def _acquisition(header: Any) -> Acquisition:
    """Patient and time as comments and record line state them."""
    facts = _facts(header.comments)
    date, clock = header.base_date, header.base_time
    return Acquisition(
        patient_id=facts.get("patient id") or facts.get("patient"),
        name=facts.get("name"),
        sex=facts.get("sex"),
        age_years=_number(facts.get("age", "")),
        time=f"{date}T{clock}" if date and clock else date,
        device=facts.get("recorder") or facts.get("device"),
    )


def _number(text: str) -> float | None:
    try:
        return float(text.split()[0])
    except (IndexError, ValueError):
        return None
