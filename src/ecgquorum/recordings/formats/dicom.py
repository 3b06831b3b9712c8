"""DICOM waveforms (12-lead, general and ambulatory ECG), parsed by the `pydicom` package."""

import io
import re
import warnings
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, compact_time, join_text
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.leads import is_other_signal, normalise_leads, note_left_out
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples, note_parts, one_line
from ecgquorum.recordings.units import common_unit, millivolts_in

_FILE_BYTES = 256 << 20
_TYPES = {"SB": "i1", "UB": "u1", "SS": "i2", "US": "u2", "SL": "i4", "UL": "u4"}
_NUMBERED = {1: "I", 2: "II", 61: "III", 62: "aVR", 63: "aVL", 64: "aVF"} | {i + 2: f"V{i}" for i in range(1, 7)}
_PER_YEAR = {"Y": 1.0, "M": 12.0, "W": 52.18, "D": 365.25}
_CODED = {"SCPECG": re.compile(r"^5\.6\.3-9-(\d+)$"), "MDC": re.compile(r"^2:(\d+)$")}


def is_dicom(head: bytes) -> bool:
    """Whether a file begins like DICOM: 128 bytes of anything, then DICM."""
    return head[128:132] == b"DICM"


@reader(".dcm", recognise=is_dicom, any_suffix=True)  # DICOM files are often named by numbers: 1.2.840.10008.5
def read_dicom(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read the longest original multiplex group; each channel by its own sensitivity and unit."""
    import pydicom  # here, so that other formats do not wait for it
    from pydicom.errors import InvalidDicomError

    where = file.path
    content = file.read(_FILE_BYTES)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = pydicom.dcmread(io.BytesIO(content))
            group, notes = _longest(where, data)
            order = "<" if data.original_encoding[1] else ">"
            raw, definitions = _samples(where, group, order), list(group.get("ChannelDefinitionSequence") or [])
            if len(definitions) != len(raw):
                raise RecordingError(f"{where}: expected {len(raw)} channel definitions, found {len(definitions)}")
            names = normalise_leads(map(_lead, definitions))
            units = [_unit(definition) or defaults.units or "" for definition in definitions]
            voltages = [
                i for i, u in enumerate(units) if millivolts_in(u) is not None and not is_other_signal(names[i])
            ]
            notes += note_left_out(name for i, name in enumerate(names) if i not in voltages)
            if not voltages:
                raise RecordingError(
                    f"{where}: expected an ECG channel with a sensitivity in volts, found none; give --units"
                )
            signal = np.stack([_millivolts(where, raw[i], definitions[i], defaults) for i in voltages])
            unit = common_unit(units[i] for i in voltages)
            leads = defaults.leads_of(where, [names[i] for i in voltages])
            rate_hz, acquisition = float(group.SamplingFrequency), _acquisition(data)
    except RecordingError:
        raise
    except InvalidDicomError as error:
        raise RecordingError(f"{where}: expected a DICOM file, found no DICM at byte 128") from error
    except Exception as error:
        raise RecordingError(f"{where}: expected a DICOM waveform, found: {one_line(error)}") from error
    path = PurePosixPath(file.name)
    record = path.stem if path.suffix.lower() == ".dcm" else path.name
    return Recording(record, as_samples(signal), rate_hz, leads, acquisition, source=where, unit=unit, notes=notes)


def _longest(where: str, data: Any) -> tuple[Any, tuple[str, ...]]:
    """The longest original group, and a note if there are others."""
    groups = list(data.get("WaveformSequence") or [])
    if not groups:
        raise RecordingError(f"{where}: expected a DICOM waveform, found none in this {data.get('Modality') or 'file'}")
    original = [group for group in groups if group.get("WaveformOriginality") != "DERIVED"] or groups
    longest = max(original, key=lambda group: int(group.NumberOfWaveformSamples) / float(group.SamplingFrequency))
    return longest, note_parts("waveform groups", len(original))


def _samples(where: str, group: Any, order: str) -> NDArray[np.float64]:
    """(channel, time) as stored; padding is NaN."""
    kind = _TYPES.get(str(group.get("WaveformSampleInterpretation")))
    n_channels, n_samples = int(group.NumberOfWaveformChannels), int(group.NumberOfWaveformSamples)
    if kind is None or int(group.WaveformBitsAllocated) != 8 * int(kind[1]):
        raise RecordingError(
            f"{where}: expected samples of 8, 16 or 32 bits, found {group.get('WaveformSampleInterpretation')}"
        )
    expected = n_channels * n_samples * int(kind[1])
    if n_channels < 1 or n_samples < 1 or len(group.WaveformData) < expected:
        raise RecordingError(f"{where}: expected {expected} bytes of samples, found {len(group.WaveformData)}")
    stored = np.frombuffer(group.WaveformData[:expected], dtype=order + kind).reshape(n_samples, n_channels).T
    values = stored.astype(np.float64)
    padding = group.get("WaveformPaddingValue")
    if isinstance(padding, bytes) and len(padding) >= int(kind[1]):
        limits = np.iinfo(stored.dtype)
        value = float(np.frombuffer(padding[: int(kind[1])], dtype=order + kind)[0])
        _remove_padding(values, value, (limits.min, limits.max))
    return values


def _remove_padding(values: NDArray[np.float64], padding: float, extremes: tuple[int, int]) -> None:
    """Set padding to NaN: the type's smallest or largest value, or one far from the channel's other samples.

    A padding value that samples also take, such as 0, does not tell which of them are padding; these stay samples.
    """
    for row in values:
        padded = row == padding
        others = row[~padded]
        reach = np.ptp(others) if len(others) else 0.0
        if not len(others) or not others.min() - reach <= padding <= others.max() + reach or padding in extremes:
            row[padded] = np.nan


def _unit(definition: Any) -> str | None:
    units = definition.get("ChannelSensitivityUnitsSequence")
    return str(units[0].get("CodeValue") or "") if units else None


def _millivolts(where: str, row: NDArray[np.float64], definition: Any, defaults: FileDefaults) -> NDArray[np.float64]:
    sensitivity = definition.get("ChannelSensitivity")
    gain = 1.0 if sensitivity is None else float(sensitivity)
    factor = definition.get("ChannelSensitivityCorrectionFactor")
    baseline = definition.get("ChannelBaseline")
    gain *= 1.0 if factor is None else float(factor)
    return (row * gain + (0.0 if baseline is None else float(baseline))) * defaults.millivolts(where, _unit(definition))


def _lead(definition: Any) -> str:
    """The lead's name by its code, or by what the code means."""
    sources = definition.get("ChannelSourceSequence")
    source = sources[0] if sources else {}
    pattern = _CODED.get(str(source.get("CodingSchemeDesignator")))
    match = pattern.match(str(source.get("CodeValue"))) if pattern else None
    if match and int(match[1]) in _NUMBERED:
        return _NUMBERED[int(match[1])]
    meaning = str(source.get("CodeMeaning") or definition.get("ChannelLabel") or "ECG")
    return re.sub(r"\(.*?\)", "", meaning)


def _acquisition(data: Any) -> Acquisition:
    """Patient, time and device as the attributes of the file state them."""
    age = re.fullmatch(r"(\d{1,3})([YMWD])", str(data.get("PatientAge") or ""))
    date, time = (str(data.get(f"Study{part}") or "") for part in ("Date", "Time"))
    return Acquisition(
        patient_id=data.get("PatientID"),
        name=join_text(*str(data.get("PatientName") or "").partition("=")[0].split("^")),
        sex=data.get("PatientSex"),
        birth_date=data.get("PatientBirthDate"),
        age_years=int(age[1]) / _PER_YEAR[age[2]] if age else None,
        time=compact_time(data.get("AcquisitionDateTime")) or compact_time(date + time),
        device=join_text(data.get("Manufacturer"), data.get("ManufacturerModelName"), data.get("DeviceSerialNumber")),
    )
