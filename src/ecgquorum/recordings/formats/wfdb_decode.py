"""One WFDB header and its signal files: parse, check, select ECG leads, decode."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.formats.wfdb_check import MARGIN
from ecgquorum.recordings.formats.wfdb_plain_header import parse_plain_header
from ecgquorum.recordings.leads import UNNAMED_LEAD, is_other_signal, normalise_leads, note_left_out
from ecgquorum.recordings.recording import one_line
from ecgquorum.recordings.units import millivolts_in

HEADER_BYTES = 1 << 20
_MISSING_16_BIT = -(1 << 15)
_PIECE = 1 << 18


@dataclass
class Segment:
    """A record with signals of its own: the whole, or a part of a multi-segment record.

    limits: bytes that are needed of each signal file
    leads:  place and name of the signals that are ECG leads
    """

    stem: str
    header: Any
    limits: dict[str, int]
    leads: dict[int, str]

    @property
    def names(self) -> list[str]:
        return list(self.leads.values())

    @property
    def units(self) -> list[str]:
        return [self.header.units[i] for i in self.leads]

    @property
    def per_frame(self) -> list[int]:
        return [self.header.samps_per_frame[i] or 1 for i in self.leads]


def parse_header(where: str, content: bytes) -> Any:
    """The header's fields; a micro sign, which the `wfdb` package would drop from its unit, becomes a u."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    text = text.replace("\u00b5", "u").replace("\u03bc", "u")
    if plain := parse_plain_header(text):
        return plain
    with tempfile.TemporaryDirectory(prefix="ecgquorum-") as folder:
        path = Path(folder) / "record"
        path.with_suffix(".hea").write_text(text)
        return _call_wfdb(where, "rdheader", str(path))


def spell_names(headers: Iterable[Any]) -> dict[str, str]:
    """Every name of a signal in the headers of one record -> its standard spelling."""
    names = dict.fromkeys(name for header in headers for name in signal_names(header))
    return dict(zip(names, normalise_leads(names), strict=True))


def signal_names(header: Any) -> list[str]:
    """The names of its signals; one without any is an unnamed lead."""
    return [name or UNNAMED_LEAD for name in header.sig_name]


def select_ecg(header: Any, spelling: Mapping[str, str]) -> dict[int, str]:
    """Place -> standard name of each signal that is an ECG lead: in volts, and without the name of another signal."""
    found = zip(signal_names(header), header.units, strict=True)
    return {
        i: spelling[name]
        for i, (name, unit) in enumerate(found)
        if millivolts_in(unit) is not None and not is_other_signal(spelling[name])
    }


def note_other_signals(segments: Iterable[Segment]) -> tuple[str, ...]:
    """A note that names the signals which are no ECG leads."""
    return note_left_out(
        name for one in segments for i, name in enumerate(signal_names(one.header)) if i not in one.leads
    )


def decode_leads(tree: FileTree, segment: Segment, rows: Sequence[int]) -> list[NDArray[np.float32]]:
    """These of the segment's leads in millivolts."""
    places = list(segment.leads)
    header, leads = segment.header, [places[i] for i in rows]
    if _is_plain_16_bit(header):
        ((inner, limit),) = segment.limits.items()
        samples = tree.first(inner, limit)
        if len(samples) < limit - MARGIN:
            raise RecordingError(f"{tree.where(inner)}: expected {limit - MARGIN} bytes, found {len(samples)}")
        signal = list(_decode_16_bit(header, samples, leads))
    else:
        name = f"{segment.stem}.hea"
        with tree.on_disk({name: HEADER_BYTES, **segment.limits}) as folder:
            path = str(folder / PurePosixPath(segment.stem).name)
            single = set(header.samps_per_frame) <= {1, None}
            options = {"channels": leads, "return_res": 32, "smooth_frames": single}
            found = _call_wfdb(tree.where(name), "rdrecord", path, **options)
            signal = list(found.p_signal.T) if single else found.e_p_signal
    factors = [np.float32(millivolts_in(header.units[i]) or 0.0) for i in leads]
    return [row if factor == 1 else row * factor for row, factor in zip(signal, factors, strict=True)]


def _is_plain_16_bit(header: Any) -> bool:
    """Whether all signals lie interleaved in one file of 16-bit samples, as in both data sets."""
    return (
        set(header.fmt) == {"16"}
        and len(set(header.file_name)) == 1
        and set(header.samps_per_frame) <= {1, None}
        and not any(header.skew)
    )


def _decode_16_bit(header: Any, content: bytes, leads: Sequence[int]) -> NDArray[np.float32]:
    """(lead, time) of these leads in physical units: the same as `wfdb.rdrecord`, without parsing the header again.

    A piece at a time, so that a day of samples is not in memory in double precision.
    """
    n_values = header.n_sig * header.sig_len
    raw = np.frombuffer(content, dtype="<i2", count=n_values, offset=header.byte_offset[0] or 0)
    raw = raw.reshape(header.sig_len, header.n_sig)
    signal = np.empty((len(leads), header.sig_len), dtype=np.float32)
    for row, lead in zip(signal, leads, strict=True):
        baseline, gain = float(header.baseline[lead]), float(header.adc_gain[lead])
        for start in range(0, header.sig_len, _PIECE):
            piece = raw[start : start + _PIECE, lead]
            samples = row[start : start + _PIECE]
            samples[:] = (piece - baseline) / gain
            samples[piece == _MISSING_16_BIT] = np.nan
    return signal


def _call_wfdb(where: str, function: str, path: str, **options: Any) -> Any:
    """Call a function of the `wfdb` package; any error of it becomes a `RecordingError` that names the file."""
    import wfdb  # here, so that other formats do not wait for it

    try:
        return getattr(wfdb, function)(path, **options)
    except Exception as error:
        raise RecordingError(f"{where}: expected a readable WFDB record, found: {one_line(error)}") from error
