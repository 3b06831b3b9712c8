"""WFDB records: a `.hea` header with its signal files, in one or several segments, in a folder or in a zip archive.

The `wfdb` package parses and decodes. All headers are checked first against the sizes of their signal files, so that a
wrong one cannot make it allocate memory for samples that do not exist.
"""

from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, parse_years
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import FileTree, OpenedFile
from ecgquorum.recordings.formats.wfdb_check import check_header
from ecgquorum.recordings.formats.wfdb_decode import (
    HEADER_BYTES,
    Segment,
    decode_leads,
    note_other_signals,
    parse_header,
    select_ecg,
    signal_names,
    spell_names,
)
from ecgquorum.recordings.formats.wfdb_segments import JoinedSegments, read_segments
from ecgquorum.recordings.leads import leads_of_one_rate
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.units import common_unit


@reader(".hea")
def read_wfdb(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read a WFDB record by its header; the header states rate, leads and units itself.

    Samples are converted to millivolts and lead names to their standard spelling; signals in other units than volts
    (respiration, pressure) or with the name of another signal are left out. A signal with several samples per frame has
    so many times the rate of frames. Gaps between segments, and segments that cannot be read, are missing samples.
    Codes of a `#Dx:` comment become the recording's labels.
    """
    tree, where = file.tree, file.path
    stem = file.name.removesuffix(".hea")
    header = parse_header(where, file.read(HEADER_BYTES))
    found: Segment | JoinedSegments
    if getattr(header, "n_seg", None) is None:
        found = _open_record(tree, stem, header)
        left_out = note_other_signals([found])
    else:
        found = read_segments(tree, stem, header)
        left_out = found.notes
    kept, slower = leads_of_one_rate(found.names, [float(header.fs) * samples for samples in found.per_frame])
    rows = decode_leads(tree, found, kept) if isinstance(found, Segment) else [found.signal[i] for i in kept]
    return Recording(
        id=PurePosixPath(stem).name,
        signal=np.stack(rows),
        rate_hz=float(header.fs) * found.per_frame[kept[0]],
        leads=defaults.leads_of(where, [found.names[i] for i in kept]),
        acquisition=_acquisition(header),
        labels=_diagnoses(header.comments),
        source=where,
        unit=common_unit(found.units[i] for i in kept),
        notes=(*slower, *left_out),
    )


def _open_record(tree: FileTree, stem: str, header: Any) -> Segment:
    """Check the header of a record of one segment and select its ECG leads."""
    limits = check_header(tree, stem, header)
    leads = select_ecg(header, spell_names([header]))
    if not leads:
        signals = zip(signal_names(header)[:12], header.units, strict=False)
        found = ", ".join(f"{name} in {unit}" for name, unit in signals)
        raise RecordingError(
            f"{tree.where(f'{stem}.hea')}: expected at least one ECG lead in volts, millivolts or microvolts, found "
            f"{found}"
        )
    return Segment(stem, header, limits, leads)


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
