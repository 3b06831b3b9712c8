"""SCP-ECG, ISHNE Holter, MFER, Mortara ELI and Kardia JSON, parsed by the `ecgdatakit` package (extra `formats`)."""

import re
import tempfile
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, join_text
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.formats.scp_sections import check_scp
from ecgquorum.recordings.leads import is_other_signal, leads_of_one_rate, normalise_leads, note_left_out
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples, one_line
from ecgquorum.recordings.units import common_unit, millivolts_in

_BINARY_BYTES = 128 << 20  # the package holds samples as float64, four times the size of the file
_TEXT_BYTES = 64 << 20
_SCP_BYTES = 16 << 20
_SAMPLES = 1 << 26
_ISHNE_FAULT = -32768
_MFER_ECG = (*range(10), 20, 21)
_MORTARA = re.compile(
    r"<ECG\s[^>]*\b(?:ACQUISITION_TIME|NUM_QRS|VENT_RATE)|<ECG[\s>].*?<(?:SUBJECT|SOURCE|CHANNEL)\s", re.S
)
_KARDIA = re.compile(r'^\s*\{.*"(?:recordedAt|algorithmDetermination|amplitudeResolution|data12L)"\s*:', re.S)


def is_scp(head: bytes) -> bool:
    """Whether a file begins with section 0 of SCP-ECG, whose first pointer is to itself, at byte 7."""
    return head[8:10] == b"\0\0" and head[22:24] == b"\0\0" and head[28:32] == b"\x07\0\0\0"


def is_ishne(head: bytes) -> bool:
    """Whether a file begins like an ISHNE Holter file."""
    return head.startswith(b"ISHNE1.0")


def is_mortara(head: bytes) -> bool:
    """Whether an XML file has the root element of Mortara ELI."""
    return _MORTARA.search(_text(head)) is not None


def is_kardia(head: bytes) -> bool:
    """Whether a file is JSON with the keys of the Kardia API."""
    return _KARDIA.match(_text(head)) is not None


def _text(head: bytes) -> str:
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return head.decode("utf-16" if wide else "utf-8-sig", errors="ignore")


@reader(".scp", recognise=is_scp, any_suffix=True)
def read_scp(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read the rhythm data of an SCP-ECG file; recorded calibration leads are left out."""
    content, notes = check_scp(file.path, file.read(_SCP_BYTES))
    record, found = _parse_copy(file, "SCP-ECG", "scp_ecg:SCPECGParser", content)
    rate_hz = 1e6 / record.raw_metadata["rhythm_sample_interval_us"]
    return _recording(file, defaults, record, [rate_hz] * len(record.leads), (*notes, *found))


@reader(".ecg", recognise=is_ishne, any_suffix=True)
def read_ishne(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read an ISHNE Holter file; samples that flag a lead fault are missing.

    A file with fewer samples than its header states is read with a note: some devices state the size of their memory.
    """
    record, notes = _parse_file(file, "ISHNE Holter", "ishne_holter:ISHNEHolterParser", _BINARY_BYTES)
    for lead in record.leads:
        lead.samples[lead.samples == _ISHNE_FAULT] = np.nan
    declared, found = int.from_bytes(file.head(18)[14:18], "little", signed=True), len(record.leads[0].samples)
    if found < declared:
        notes = (*notes, f"{found} samples of each lead, {declared} by its header; it may be cut short")
    return _recording(file, defaults, record, [lead.sampling_rate for lead in record.leads], notes)


@reader(".mwf", ".mfer", ".mfr")
def read_mfer(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read the ECG leads of an MFER file."""
    record, notes = _parse_file(file, "MFER", "mfer:MFERParser", _BINARY_BYTES)
    kinds = {frame["waveform_type"] or 0 for frame in record.raw_metadata["frames"]}
    if not kinds & set(_MFER_ECG):
        raise RecordingError(f"{file.path}: expected an ECG, found waveforms of the MFER types {sorted(kinds)}")
    return _recording(file, defaults, record, record.raw_metadata.get("sampling_rates") or [], notes)


@reader(".xml", recognise=is_mortara)
def read_mortara(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read the channels of a Mortara ELI file; typical cycles are ignored."""
    record, notes = _parse_file(file, "Mortara ELI", "mortara_el250:MortaraEL250Parser", _TEXT_BYTES)
    return _recording(file, defaults, record, [lead.sampling_rate for lead in record.leads], notes)


@reader(recognise=is_kardia, any_suffix=True)  # no suffix of its own: most .json files are no recordings
def read_kardia(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read the unfiltered leads of a recording of the Kardia API."""
    record, notes = _parse_file(file, "Kardia JSON", "alivecor_kardia:AliveCorKardiaParser", _TEXT_BYTES)
    rate_hz = float(record.raw_metadata["raw"]["frequency"])
    return _recording(file, defaults, record, [rate_hz] * len(record.leads), notes)


def _parse_file(file: OpenedFile, what: str, parser: str, limit: int) -> tuple[Any, tuple[str, ...]]:
    """What the package's parser finds in the file, and notes about it."""
    size = file.tree.size(file.name) or 0
    if size > limit:
        raise RecordingError(f"{file.path}: expected at most {limit} bytes, found {size}")
    with file.tree.on_disk({file.name: size}) as folder:
        return _parse(file.path, what, parser, folder / PurePosixPath(file.name).name)


def _parse_copy(file: OpenedFile, what: str, parser: str, content: bytes) -> tuple[Any, tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="ecgquorum-") as folder:
        path = Path(folder) / "copy"
        path.write_bytes(content)
        return _parse(file.path, what, parser, path)


def _parse(where: str, what: str, parser: str, path: Path) -> tuple[Any, tuple[str, ...]]:
    module, _, name = parser.partition(":")
    try:
        parse: Callable[[Path], Any] = getattr(import_module(f"ecgdatakit.parsing.parsers.{module}"), name)().parse
        checksum: type[Warning] = import_module("ecgdatakit.exceptions").ChecksumWarning
    except ImportError as error:
        raise RecordingError(
            f"{where}: {what} files are read by the package ecgdatakit, which is not installed: "
            "pip install 'ecgquorum[formats]'"
        ) from error
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            record = parse(path)
    except Exception as error:
        raise RecordingError(f"{where}: expected a {what} file, found: {one_line(error)}") from error
    return record, tuple(" ".join(str(one.message).split()) for one in caught if issubclass(one.category, checksum))


def _recording(
    file: OpenedFile, defaults: FileDefaults, record: Any, rates: list[float], notes: tuple[str, ...]
) -> Recording:
    """The ECG leads at the rate that most of them have, each as long as the longest."""
    where = file.path
    names = normalise_leads(lead.label for lead in record.leads)
    chosen = [
        (lead, name, rate_hz)
        for lead, name, rate_hz in zip(record.leads, names, rates, strict=True)
        if millivolts_in(_unit(lead)) is not None and not is_other_signal(name) and not name.lower().endswith("-cal")
    ]
    if not chosen:
        found = ", ".join(f"{lead.label} in {_unit(lead) or 'no unit'}" for lead in record.leads[:12]) or "no leads"
        raise RecordingError(f"{where}: expected ECG leads in volts, found {found}")
    left_out = note_left_out(lead.label for lead in record.leads if all(lead is not one for one, _, _ in chosen))
    kept, slower = leads_of_one_rate([name for _, name, _ in chosen], [rate_hz for _, _, rate_hz in chosen])
    leads, rate_hz, notes = [chosen[i][0] for i in kept], chosen[kept[0]][2], (*notes, *left_out, *slower)
    starts = [int(lead.annotations.get("start_sample", 1)) - 1 for lead in leads]
    longest = max(start + len(lead.samples) for start, lead in zip(starts, leads, strict=True))
    if not 0 < longest * len(leads) <= _SAMPLES:
        raise RecordingError(f"{where}: expected 1 to {_SAMPLES} samples, found {longest * len(leads)}")
    signal = np.full((len(leads), longest), np.nan, dtype=np.float32)
    for row, start, lead in zip(signal, starts, leads, strict=True):
        samples = _millivolts(lead)
        row[start : start + len(samples)] = samples
    return Recording(
        file.stem,
        signal,
        float(rate_hz),
        defaults.leads_of(where, [chosen[i][1] for i in kept]),
        _acquisition(record),
        source=where,
        unit=common_unit(map(_unit, leads)),
        notes=notes,
    )


def _unit(lead: Any) -> str:
    return str(lead.resolution_unit if lead.is_raw else lead.units)


def _millivolts(lead: Any) -> NDArray[np.float32]:
    """The samples of a lead, which is emptied: a day of them is large."""
    factor = millivolts_in(_unit(lead)) or 0.0
    scale, offset = (lead.resolution * factor, lead.offset * factor) if lead.is_raw else (factor, 0.0)
    samples = as_samples(lead.samples)
    lead.samples = samples[:0]
    with np.errstate(over="ignore", invalid="ignore"):
        samples *= np.float32(scale)
        samples += np.float32(offset)
    return samples


def _acquisition(record: Any) -> Acquisition:
    patient, device, time = record.patient, record.recording.device, record.recording.date
    return Acquisition(
        patient_id=join_text(patient.patient_id),
        name=join_text(patient.last_name, patient.first_name),
        sex=patient.sex,
        birth_date=patient.birth_date.date().isoformat() if patient.birth_date else None,
        age_years=patient.age,
        time=time.isoformat() if time else None,
        device=join_text(device.manufacturer, device.model or device.name, device.serial_number),
    )
