"""WFDB records of several segments, joined to one signal; a segment that cannot be read is missing samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.formats.wfdb_check import check_decoded_size, check_header, check_rate
from ecgquorum.recordings.formats.wfdb_decode import (
    HEADER_BYTES,
    Segment,
    decode_leads,
    note_other_signals,
    parse_header,
    select_ecg,
    spell_names,
)
from ecgquorum.recordings.wfdb_files import GAP

_MOST_SEGMENTS = 10_000
_MOST_UNREADABLE = 0.5
_MOST_NAMED = 20


@dataclass
class JoinedSegments:
    """The leads of a multi-segment record: names, units, samples per frame and samples; gaps are NaN."""

    names: list[str]
    units: list[str]
    per_frame: list[int]
    signal: list[NDArray[np.float32]]
    notes: tuple[str, ...]


@dataclass
class _Segments:
    """The segments of a record by number; one that cannot be read is in `failures`, a gap is in neither."""

    where: str
    header: Any
    readable: dict[int, Segment] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)

    def fail(self, number: int, error: RecordingError) -> None:
        """Note that a segment cannot be read; a lack of memory is no fault of the file."""
        if isinstance(error.__cause__, MemoryError):
            raise error
        self.readable.pop(number, None)
        folder = self.where[: len(self.where) - len(PurePosixPath(self.where).name)]
        self.failures[number] = str(error).replace(folder, "") if folder else str(error)

    def notes(self) -> tuple[str, ...]:
        """What is missing, each segment by its name; raises if it is most of the record."""
        names, lengths = self.header.seg_name, self.header.seg_len
        n_lost = sum(lengths[number] for number in self.failures)
        n_stored = sum(length for name, length in zip(names, lengths, strict=True) if name != GAP)
        if n_lost > _MOST_UNREADABLE * n_stored or not self.readable:
            first, reason = next(iter(self.failures.items()), (0, "it has none with samples"))
            raise RecordingError(
                f"{self.where}: {len(self.failures)} of its {len(names)} segments cannot be read, "
                f"{n_lost / max(1, n_stored):.0%} of its samples; segment {str(names[first])[:80]}: {reason}"
            )
        notes = [
            f"segment {names[number]} cannot be read, its {lengths[number]} samples are missing: {reason}"
            for number, reason in list(self.failures.items())[:_MOST_NAMED]
        ]
        others = ", ".join(str(names[number]) for number in list(self.failures)[_MOST_NAMED:])
        return (*notes, *((f"segments that cannot be read either: {others}",) if others else ()))


def read_segments(tree: FileTree, stem: str, header: Any) -> JoinedSegments:
    """Read the ECG leads of a multi-segment record.

    With a variable layout, the first segment has no samples and lists all signals; a segment has some of them, by name.
    A segment that is missing, damaged or does not fit becomes missing samples with a note, unless it is more than half
    of the record.
    """
    where = tree.where(f"{stem}.hea")
    check_rate(where, header)
    total = sum(header.seg_len)
    if len(header.seg_name) > _MOST_SEGMENTS or min(header.seg_len) < 0 or total != (header.sig_len or total):
        raise RecordingError(
            f"{where}: expected at most {_MOST_SEGMENTS} segments of {header.sig_len} samples together, found "
            f"{len(header.seg_name)} of {total}"
        )
    segments = _open_segments(tree, stem, header)
    segments.notes()  # raises if most is missing, before anything is allocated
    layout = _layout(segments)
    if not layout:
        raise RecordingError(f"{where}: expected at least one ECG lead in volts, found none in its segments")
    check_decoded_size(where, total * sum(per_frame for _, per_frame in layout.values()))
    signal = {key: np.full(n * total, np.nan, dtype=np.float32) for key, (_, n) in layout.items()}
    start = 0
    for number, length in enumerate(header.seg_len):
        segment = segments.readable.get(number)
        if segment is not None and length and segment.leads:
            try:
                rows = _decode_segment(tree, segment, layout)
                for key, row in rows.items():
                    per_frame = layout[key][1]
                    signal[key][per_frame * start : per_frame * (start + length)] = row
            except RecordingError as error:
                segments.fail(number, error)
        start += length
    return JoinedSegments(
        [name for name, _ in layout],
        [unit for unit, _ in layout.values()],
        [per_frame for _, per_frame in layout.values()],
        list(signal.values()),
        (*note_other_signals(segments.readable.values()), *segments.notes()),
    )


def _open_segments(tree: FileTree, stem: str, header: Any) -> _Segments:
    """Check every segment, then select ECG leads by the names that all of them have together."""
    segments = _Segments(tree.where(f"{stem}.hea"), header)
    for number, name in enumerate(header.seg_name):
        if name == GAP:
            continue
        try:
            segments.readable[number] = _open_segment(tree, stem, header, number)
        except RecordingError as error:
            segments.fail(number, error)
    spelling = spell_names(one.header for one in segments.readable.values())
    for number, one in segments.readable.items():
        segments.readable[number] = replace(one, leads=select_ecg(one.header, spelling))
    return segments


def _open_segment(tree: FileTree, stem: str, header: Any, number: int) -> Segment:
    """Check a segment against its signal files and the record's header."""
    name, length = str(header.seg_name[number]), header.seg_len[number]
    inner = (PurePosixPath(stem).parent / name).as_posix()
    if PurePosixPath(name).name != name or tree.size(f"{inner}.hea") is None:
        raise RecordingError(f"expected {name[:80]}.hea beside the header, found none")
    one = parse_header(tree.where(f"{inner}.hea"), tree.read(f"{inner}.hea", HEADER_BYTES))
    if getattr(one, "n_seg", None) is not None or not one.n_sig or len(one.sig_name or []) != one.n_sig:
        raise RecordingError(f"expected {name[:80]} to be a segment with signals, found none in its header")
    if length == 0 and number == 0:
        return Segment(inner, one, {}, {})
    limits = check_header(tree, inner, one)
    if one.sig_len != length or one.fs != header.fs:
        raise RecordingError(
            f"expected {length} samples at {header.fs:g} Hz in {name}.hea, found {one.sig_len} at {one.fs:g} Hz"
        )
    return Segment(inner, one, limits, {})


_Key = tuple[str, int]


def _layout(segments: _Segments) -> dict[_Key, tuple[str, int]]:
    """Each lead of the record, as name and number among leads of that name: its unit and samples per frame.

    It is what the first segment has; where that cannot be read, what any segment has.
    """
    stated = [segments.readable[number] for number in sorted(segments.readable)]
    layout: dict[_Key, tuple[str, int]] = {}
    for one in stated if 0 in segments.failures else stated[:1]:
        for key, unit, per_frame in zip(_occurrences(one.names), one.units, one.per_frame, strict=True):
            layout.setdefault(key, (unit, per_frame))
    return layout


def _decode_segment(
    tree: FileTree, segment: Segment, layout: Mapping[_Key, tuple[str, int]]
) -> dict[_Key, NDArray[np.float32]]:
    """The segment's leads; raises if one is not in the layout of the record."""
    keys = _occurrences(segment.names)
    for key, per_frame in zip(keys, segment.per_frame, strict=True):
        if key not in layout or layout[key][1] != per_frame:
            raise RecordingError(f"expected {per_frame} samples per frame of {key[0]} in all segments, found others")
    rows = decode_leads(tree, segment, range(len(keys)))
    return dict(zip(keys, rows, strict=True))


def _occurrences(names: Sequence[str]) -> list[_Key]:
    """Each name with how often it came before: two signals of a segment may share a name."""
    return [(name, names[:i].count(name)) for i, name in enumerate(names)]
