"""EDF, EDF+, BDF and BDF+ files, read by the `edfio` package after their header was checked against their size."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.leads import (
    STANDARD_LEADS,
    UNNAMED_LEAD,
    is_other_signal,
    leads_of_one_rate,
    normalise_leads,
    note_left_out,
)
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples, one_line
from ecgquorum.recordings.units import common_unit, millivolts_in

_FILE_BYTES = 256 << 20
_FIXED, _PER_SIGNAL = 256, 256
_MOST_SIGNALS = 512
_ENCODING = "latin-1"  # the standard says ASCII, devices write a micro sign
_BDF = b"\xffBIOSEMI"
_NO_TIME = "1985-01-01T00:00:00"  # what writers put where the time is removed
_ECG = re.compile(r"\bE[CK]G", re.IGNORECASE)


@reader(".edf", ".bdf")
def read_edf(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read the ECG leads of an EDF or BDF file: signals in volts whose labels say ECG or name a standard lead."""
    import edfio  # here, so that other formats do not wait for it

    where = file.path
    content = file.read(_FILE_BYTES)
    _check(where, content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if content.startswith(_BDF):
                edf: Any = edfio.read_bdf(content, header_encoding=_ENCODING)
            else:
                edf = edfio.read_edf(content, lazy_load_data=False, header_encoding=_ENCODING)
            every = list(edf.signals)
            chosen = _choose_leads(where, every, defaults)
            signals, names = [every[i] for i in chosen], list(chosen.values())
            rates_hz = [float(signal.sampling_frequency) for signal in signals]
            kept, notes = leads_of_one_rate([signal.label for signal in signals], rates_hz)
            notes += note_left_out(signal.label for i, signal in enumerate(every) if i not in chosen)
            signals, names = [signals[i] for i in kept], [names[i] for i in kept]
            acquisition = _acquisition(edf)
            samples = [np.asarray(signal.data, dtype=np.float64) for signal in signals]
    except RecordingError:
        raise
    except Exception as error:
        raise RecordingError(f"{where}: expected an EDF or BDF file, found: {one_line(error)}") from error
    factors = [defaults.millivolts(where, _unit(signal)) for signal in signals]
    return Recording(
        file.stem,
        as_samples(np.stack([values * factor for values, factor in zip(samples, factors, strict=True)])),
        rates_hz[kept[0]],
        _name_leads(where, names, defaults),
        acquisition,
        source=where,
        unit=common_unit(_unit(signal) or defaults.units for signal in signals),
        notes=notes,
    )


def _check(where: str, content: bytes) -> None:
    """Raise if the header does not match the size of the file."""
    try:
        header_bytes, n_records = int(content[184:192]), int(content[236:244])
        n_signals = int(content[252:256])
    except ValueError as error:
        raise RecordingError(f"{where}: expected the header of an EDF file, found none") from error
    if not 1 <= n_signals <= _MOST_SIGNALS or header_bytes != _FIXED + _PER_SIGNAL * n_signals:
        raise RecordingError(f"{where}: expected an EDF header of 1 to {_MOST_SIGNALS} signals, found it damaged")
    if content[192:197] in (b"EDF+D", b"BDF+D"):
        raise RecordingError(f"{where}: expected one stretch without a break, found a discontinuous EDF+ file")
    lengths = content[_FIXED + 216 * n_signals : _FIXED + 224 * n_signals]
    try:
        per_record = [int(lengths[8 * i : 8 * i + 8]) for i in range(n_signals)]
    except ValueError as error:
        raise RecordingError(f"{where}: expected samples in each data record, found the header damaged") from error
    expected = header_bytes + (3 if content.startswith(_BDF) else 2) * n_records * sum(per_record)
    if n_records < 1 or min(per_record) < 1 or len(content) < expected:
        raise RecordingError(
            f"{where}: expected {expected} bytes as its header says, found {len(content)}; the file is truncated"
        )


def _choose_leads(where: str, signals: list[Any], defaults: FileDefaults) -> dict[int, str]:
    """Place -> name of each signal that is an ECG lead."""
    names = normalise_leads(
        signal.label.replace("EKG", UNNAMED_LEAD).replace("ekg", UNNAMED_LEAD) for signal in signals
    )
    voltages = {
        i: names[i]
        for i, signal in enumerate(signals)
        if not is_other_signal(names[i]) and millivolts_in(_unit(signal) or defaults.units or "") is not None
    }
    named = {i: name for i, name in voltages.items() if name in STANDARD_LEADS or _ECG.search(name)}
    chosen = named or (voltages if len(voltages) == 1 or defaults.leads else {})
    if not chosen:
        labels = ", ".join(repr(signal.label) for signal in signals[:12])
        raise RecordingError(f"{where}: expected signals that are ECG leads in volts, found {labels}")
    for signal in (signals[i] for i in chosen):
        if signal.physical_min == signal.physical_max or signal.digital_min == signal.digital_max:
            raise RecordingError(
                f"{where}: the digital or physical range of {signal.label!r} has zero width; the signal has no scale"
            )
    return chosen


def _name_leads(where: str, names: list[str], defaults: FileDefaults) -> tuple[str, ...]:
    unnamed = [name for name in names if name not in STANDARD_LEADS and _ECG.search(name)]
    if len(unnamed) == 1:
        names[names.index(unnamed[0])] = UNNAMED_LEAD
    elif not unnamed and not set(names) & set(STANDARD_LEADS) and defaults.leads:
        return defaults.lead_names(where, len(names))  # chosen only because the user has named the leads
    return defaults.leads_of(where, names)


def _acquisition(edf: Any) -> Acquisition:
    """Patient, time and equipment of an EDF+ header; of plain EDF, in which these are free text, the first word."""
    patient, recording = edf.patient, edf.recording
    return Acquisition(
        patient_id=_read_fact(lambda: patient.code),
        name=_read_fact(lambda: patient.name.replace("_", " ")),
        sex=_read_fact(lambda: patient.sex),
        birth_date=_read_fact(lambda: patient.birthdate),
        time=_read_fact(lambda: f"{edf.startdate}T{edf.starttime}"),
        device=_read_fact(lambda: recording.equipment_code),
    )


def _read_fact(fact: Callable[[], Any]) -> str | None:
    """A fact of the header; None for X, which stands for unknown, for an anonymised date, and where it is malformed."""
    try:
        text = str(fact())
    except Exception:  # the header is free text; edfio raises many kinds of errors
        return None
    return None if text in ("X", "", "None", _NO_TIME) else text


def _unit(signal: Any) -> str | None:
    found = str(signal.physical_dimension).strip()
    try:
        return found.encode(_ENCODING).decode() or None
    except UnicodeDecodeError:
        return found
