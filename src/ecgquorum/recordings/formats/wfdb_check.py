"""Compare a WFDB header with the sizes of its signal files, so that a wrong one cannot make a decoder allocate."""

from collections import defaultdict
from pathlib import PurePosixPath
from typing import Any

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.recording import FASTEST_RATE_HZ, SLOWEST_RATE_HZ

MARGIN = 64
"""Bytes beyond the samples that decoders of packed formats may read."""

_BITS_PER_SAMPLE = {
    "8": 8,
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
_FLAC = ("508", "516", "524")
_FLAC_BYTES = 256 << 20
_DECODED_BYTES = 2 << 30
_LONGEST_SKEW_S = 10.0


def check_header(tree: FileTree, stem: str, header: Any) -> dict[str, int]:
    """Raise if the header does not match its signal files; return how many bytes of each file it needs.

    A length that the header does not state is computed from the files.
    """
    where = tree.where(f"{stem}.hea")
    n_lines = len(header.file_name or [])
    if not header.n_sig or n_lines != header.n_sig:
        raise RecordingError(f"{where}: expected {header.n_sig} signal lines, at least one, found {n_lines}")
    check_rate(where, header)
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
        if tree.size(inner) is None:
            raise RecordingError(f"{where}: expected its signal file {file_name} beside it, found none")
        formats = {str(header.fmt[i]) for i in signals}
        if len(formats) != 1 or not formats <= {*_BITS_PER_SAMPLE, *_FLAC}:
            raise RecordingError(
                f"{where}: expected one signal format of {', '.join((*_BITS_PER_SAMPLE, *_FLAC))} for {file_name}, "
                f"found {', '.join(sorted(formats))}"
            )
        check = _check_flac if formats <= set(_FLAC) else _check_samples
        limits[inner] = check(where, tree, inner, header, signals)
    if not header.sig_len:
        raise RecordingError(f"{where}: expected samples, found a length of 0")
    check_decoded_size(where, header.n_sig * header.sig_len * max(header.samps_per_frame))
    return limits


def check_rate(where: str, header: Any) -> None:
    """Raise if the rate of frames is not that of an ECG."""
    if not header.fs or not SLOWEST_RATE_HZ <= header.fs <= FASTEST_RATE_HZ:
        raise RecordingError(
            f"{where}: expected a sampling rate from {SLOWEST_RATE_HZ:g} to {FASTEST_RATE_HZ:g} Hz, found {header.fs}"
        )


def check_decoded_size(where: str, n_samples: int) -> None:
    """Raise if so many samples need more memory than a recording may have."""
    if 4 * n_samples > _DECODED_BYTES:
        raise RecordingError(
            f"{where}: expected at most {_DECODED_BYTES} bytes of samples, found {4 * n_samples}; split the record"
        )


def _check_samples(where: str, tree: FileTree, inner: str, header: Any, signals: list[int]) -> int:
    """Bytes that a file of samples of one size must have."""
    found = tree.size(inner) or 0
    bits = _BITS_PER_SAMPLE[str(header.fmt[signals[0]])]
    offset = header.byte_offset[signals[0]] or 0
    per_frame = sum(header.samps_per_frame[i] or 1 for i in signals)
    if header.sig_len is None:
        header.sig_len = max(0, int((found - offset) * 8 / bits) // per_frame)
    expected = offset + int(per_frame * header.sig_len * bits / 8)
    if found < expected:
        raise RecordingError(
            f"{where}: expected {expected} bytes in {PurePosixPath(inner).name} "
            f"({len(signals)} signals x {header.sig_len} samples, {bits:g} bits each, after {offset} bytes), "
            f"found {found}; the file is truncated or the header is wrong"
        )
    return expected + MARGIN


def _check_flac(where: str, tree: FileTree, inner: str, header: Any, signals: list[int]) -> int:
    """Bytes of a FLAC file whose own header must state as many channels and samples as the WFDB header does."""
    found, name = tree.size(inner) or 0, PurePosixPath(inner).name
    if found > _FLAC_BYTES:
        raise RecordingError(
            f"{where}: expected at most {_FLAC_BYTES} bytes in {name}, found {found}; split the record"
        )
    head = tree.first(inner, 42)
    if head[:4] != b"fLaC" or len(head) < 42:
        raise RecordingError(f"{where}: expected {name} to be a FLAC file, found another")
    described = int.from_bytes(head[18:26], "big")  # rate: 20 bits, channels: 3, bits: 5, samples: 36
    n_channels, n_samples = (described >> 41 & 7) + 1, described & ((1 << 36) - 1)
    per_frame = header.samps_per_frame[signals[0]] or 1
    if header.sig_len is None:
        header.sig_len = n_samples // per_frame
    if n_channels != len(signals) or n_samples < header.sig_len * per_frame:
        raise RecordingError(
            f"{where}: expected {len(signals)} channels of {header.sig_len * per_frame} samples in {name}, "
            f"found {n_channels} of {n_samples}; the file is truncated or the header is wrong"
        )
    return found
