"""WFDB records: a `.hea` header with its signal files, in one or several segments, in a folder or in a zip archive.

The `wfdb` package parses and decodes. All headers are checked first against the sizes of their signal files, so that a
wrong one cannot make it allocate memory for samples that do not exist.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, parse_years
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import FileTree, OpenedFile
from ecgquorum.recordings.formats.wfdb_check import MARGIN, check_decoded_size, check_header, check_rate
from ecgquorum.recordings.leads import UNNAMED_LEAD, is_other_signal, leads_of_one_rate
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, one_line
from ecgquorum.recordings.units import common_unit, millivolts_in
from ecgquorum.recordings.wfdb_files import GAP

_HEADER_BYTES = 1 << 20
_MOST_SEGMENTS = 10_000
_MISSING_16_BIT = -(1 << 15)


@dataclass
class _Segment:
    """A record with signals of its own: the whole, or a part of a multi-segment record.

    limits: bytes that are needed of each signal file
    leads:  which of its signals are ECG leads
    """

    stem: str
    header: Any
    limits: dict[str, int]
    leads: list[int]

    @property
    def names(self) -> list[str]:
        return [self.header.sig_name[i] or UNNAMED_LEAD for i in self.leads]

    @property
    def units(self) -> list[str]:
        return [self.header.units[i] for i in self.leads]

    @property
    def per_frame(self) -> list[int]:
        return [self.header.samps_per_frame[i] or 1 for i in self.leads]


@reader(".hea")
def read_wfdb(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read a WFDB record by its header; the header states rate, leads and units itself.

    Samples are converted to millivolts and lead names to their standard spelling; signals in other units than volts
    (respiration, pressure) or with the name of another signal are left out. A signal with several samples per frame has
    so many times the rate of frames. Gaps between segments are missing samples. Codes of a `#Dx:` comment become the
    recording's labels.
    """
    tree, where = file.tree, file.path
    stem = file.name.removesuffix(".hea")
    header = _parse_header(where, file.read(_HEADER_BYTES))
    if getattr(header, "n_seg", None) is None:
        whole = _prepare_segment(tree, stem, header)
        names, units, per_frame, signal = whole.names, whole.units, whole.per_frame, None
    else:
        names, units, per_frame, signal = _read_segments(tree, stem, header)
    kept, notes = leads_of_one_rate(names, [float(header.fs) * samples for samples in per_frame])
    rows = [signal[i] for i in kept] if signal is not None else _decode(tree, whole, kept)
    return Recording(
        id=PurePosixPath(stem).name,
        signal=np.stack(rows),
        rate_hz=float(header.fs) * per_frame[kept[0]],
        leads=defaults.leads_of(where, [names[i] for i in kept]),
        acquisition=_acquisition(header),
        labels=_diagnoses(header.comments),
        source=where,
        unit=common_unit(units[i] for i in kept),
        notes=notes,
    )


def _prepare_segment(tree: FileTree, stem: str, header: Any) -> _Segment:
    """Check the header of a single segment and select its ECG leads."""
    where = tree.where(f"{stem}.hea")
    limits = check_header(tree, stem, header)
    leads = _ecg_leads(header)
    if not leads:
        found = ", ".join(f"{name or 'no name'} in {unit}" for name, unit in _signals(header)[:12])
        raise RecordingError(
            f"{where}: expected at least one ECG lead in volts, millivolts or microvolts, found {found}"
        )
    return _Segment(stem, header, limits, leads)


def _signals(header: Any) -> list[tuple[str | None, str]]:
    return list(zip(header.sig_name, header.units, strict=True))


def _ecg_leads(header: Any) -> list[int]:
    return [
        i
        for i, (name, unit) in enumerate(_signals(header))
        if millivolts_in(unit) is not None and not is_other_signal(name or "")
    ]


def _decode(tree: FileTree, segment: _Segment, rows: Sequence[int]) -> list[NDArray[np.float32]]:
    """These leads of the segment in millivolts."""
    header, leads = segment.header, [segment.leads[i] for i in rows]
    if _is_plain_16_bit(header):
        ((inner, limit),) = segment.limits.items()
        samples = tree.first(inner, limit)
        if len(samples) < limit - MARGIN:
            raise RecordingError(f"{tree.where(inner)}: expected {limit - MARGIN} bytes, found {len(samples)}")
        signal = list(_decode_16_bit(header, samples)[leads])
    else:
        name = f"{segment.stem}.hea"
        with tree.on_disk({name: _HEADER_BYTES, **segment.limits}) as folder:
            path = str(folder / PurePosixPath(segment.stem).name)
            single = set(header.samps_per_frame) <= {1, None}
            options = {"channels": leads, "return_res": 32, "smooth_frames": single}
            found = _call_wfdb(tree.where(name), "rdrecord", path, **options)
            signal = list(found.p_signal.T) if single else found.e_p_signal
    factors = [np.float32(millivolts_in(header.units[i]) or 0.0) for i in leads]
    return [row if factor == 1 else row * factor for row, factor in zip(signal, factors, strict=True)]


def _read_segments(
    tree: FileTree, stem: str, header: Any
) -> tuple[list[str], list[str], list[int], list[NDArray[np.float32]]]:
    """Names, units, samples per frame and samples of the leads of a multi-segment record; gaps are NaN.

    With a variable layout, the first segment has no samples and lists all signals; a segment has some of them, by name.
    """
    where = tree.where(f"{stem}.hea")
    check_rate(where, header)
    if len(header.seg_name) > _MOST_SEGMENTS or sum(header.seg_len) != (header.sig_len or sum(header.seg_len)):
        raise RecordingError(
            f"{where}: expected at most {_MOST_SEGMENTS} segments of {header.sig_len} samples together, found "
            f"{len(header.seg_name)} of {sum(header.seg_len)}"
        )
    segments = [_open_segment(tree, stem, header, number) for number in range(len(header.seg_name))]
    layout = next((one for one in segments if one is not None), None)
    if layout is None or not layout.leads:
        raise RecordingError(f"{where}: expected at least one ECG lead in volts, found none in its segments")
    keys, per_frame = _occurrences(layout.names), layout.per_frame
    check_decoded_size(where, sum(per_frame) * sum(header.seg_len))
    signal = [np.full(samples * sum(header.seg_len), np.nan, dtype=np.float32) for samples in per_frame]
    start = 0
    for segment, length in zip(segments, header.seg_len, strict=True):
        if segment is not None and length and segment.leads:
            rows = _decode(tree, segment, range(len(segment.leads)))
            for key, samples, row in zip(_occurrences(segment.names), segment.per_frame, rows, strict=True):
                if key not in keys or samples != per_frame[keys.index(key)]:
                    raise RecordingError(
                        f"{where}: expected {samples} samples per frame of {key[0]} in all its segments, found others"
                    )
                signal[keys.index(key)][samples * start : samples * (start + length)] = row
        start += length
    return layout.names, layout.units, per_frame, signal


def _open_segment(tree: FileTree, stem: str, header: Any, number: int) -> _Segment | None:
    """Check a segment against its signal files and the record's header; None for a gap."""
    where, name, length = tree.where(f"{stem}.hea"), str(header.seg_name[number]), header.seg_len[number]
    if name == GAP:
        return None
    inner = (PurePosixPath(stem).parent / name).as_posix()
    if PurePosixPath(name).name != name or tree.size(f"{inner}.hea") is None:
        raise RecordingError(f"{where}: expected its segment {name[:80]} beside it, found none")
    one = _parse_header(tree.where(f"{inner}.hea"), tree.read(f"{inner}.hea", _HEADER_BYTES))
    if getattr(one, "n_seg", None) is not None or not one.n_sig or len(one.sig_name or []) != one.n_sig:
        raise RecordingError(f"{where}: expected {name} to be a segment with signals, found none in its header")
    if length == 0 and number == 0:
        return _Segment(inner, one, {}, _ecg_leads(one))
    limits = check_header(tree, inner, one)
    if one.sig_len != length or one.fs != header.fs:
        raise RecordingError(
            f"{where}: expected {length} samples at {header.fs:g} Hz in segment {name}, found {one.sig_len} at "
            f"{one.fs:g} Hz"
        )
    return _Segment(inner, one, limits, _ecg_leads(one))


def _occurrences(names: Sequence[str]) -> list[tuple[str, int]]:
    """Each name with how often it came before: two signals of a segment may share a name."""
    return [(name, names[:i].count(name)) for i, name in enumerate(names)]


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
        age_years=parse_years(facts.get("age")),
        time=f"{date}T{clock}" if date and clock else date,
        device=facts.get("recorder") or facts.get("device"),
    )
