"""Philips SierraECG XML, plain or compressed (XLI: second differences, high bytes before low ones, in LZW codes)."""

import base64
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, join_text, parse_years
from ecgquorum.recordings.formats.xml_waveform import Traces, child, children, decode_samples, text_of
from ecgquorum.recordings.leads import STANDARD_LEADS, normalise_lead

_MICROVOLTS_PER_BIT = "5"
_LARGEST = 1 << 15
_CHUNK_HEADER = 8
_CODE_BITS, _LAST_CODE = 10, 1022
_UNPACKED_BYTES = 2 << 20  # over a minute of 16 leads at 1,000 Hz; a few kilobytes can claim a thousand times more


def parse_sierra(root: Element) -> Traces:
    """Parse all leads."""
    described = child(root, "dataacquisition", "signalcharacteristics")
    waveforms = child(root, "waveforms", "parsedwaveforms")
    if waveforms.get("dataencoding", "Base64") != "Base64":
        raise RecordingError(f"samples are not in Base64 but in {waveforms.get('dataencoding')!r}")
    labels = waveforms.get("leadlabels", " ".join(STANDARD_LEADS)).split()
    labels = labels[: int(waveforms.get("numberofleads", len(labels)))]
    rate_hz = float(text_of(described, "samplingrate"))
    compression = waveforms.get("compressmethod", waveforms.get("compression", "Uncompressed"))
    if compression == "XLI":
        content = base64.b64decode("".join((waveforms.text or "").split()), validate=True)
        leads = _decompress(content, [normalise_lead(label) for label in labels])
    elif compression in ("Uncompressed", ""):
        samples = decode_samples(waveforms.text)
        leads = list(samples[: len(samples) // len(labels) * len(labels)].reshape(len(labels), -1)) if labels else []
    else:
        raise RecordingError(f"samples are compressed by {compression!r}, not by XLI")
    if not leads:
        raise RecordingError("there are no leads")
    per_bit = float(text_of(described, "resolution", default=_MICROVOLTS_PER_BIT)) / 1000
    traces = Traces(rate_hz, acquisition=_acquisition(root))
    for label, values in zip(labels, leads, strict=True):
        traces.add(normalise_lead(label), values * per_bit, "uV")
    return traces


def _acquisition(root: Element) -> Acquisition:
    person = ("patient", "generalpatientdata")
    taken = child(root, "dataacquisition")
    machine = next(children(taken, "machine"), None)
    date, time = taken.get("date"), taken.get("time")
    return Acquisition(
        patient_id=text_of(root, *person, "patientid", default=""),
        name=join_text(*(text_of(root, *person, "name", part, default="") for part in ("lastname", "firstname"))),
        sex=text_of(root, *person, "sex", default=""),
        birth_date=text_of(root, *person, "age", "dateofbirth", default=""),
        age_years=parse_years(text_of(root, *person, "age", "years", default="")),
        time=f"{date}T{time}" if date and time else date,
        device=join_text(machine.text, machine.get("detaildescription")) if machine is not None else None,
    )


def _decompress(content: bytes, labels: list[str]) -> list[NDArray[np.float64]]:
    """Decompress one chunk for each lead: its size in 4 bytes, 2 more, its first second difference in 2, its codes."""
    leads, position, left = [], 0, _UNPACKED_BYTES
    for _ in labels:
        codes = position + _CHUNK_HEADER
        size = int.from_bytes(content[position : position + 4], "little", signed=True)
        if size <= 0 or codes + size > len(content):
            raise RecordingError("its compressed leads are damaged")
        unpacked = _unpack(content[codes : codes + size], left)
        leads.append(_integrate(unpacked, int.from_bytes(content[codes - 2 : codes], "little", signed=True)))
        position, left = codes + size, left - len(unpacked)
    return _restore_limb_leads(labels, leads)


def _unpack(codes: bytes, most: int) -> bytes:
    """Decode LZW codes, each a byte or an earlier string; raises for more than `most` bytes."""
    n_codes = min(len(codes) * 8 // _CODE_BITS, most + 1)
    bits = np.unpackbits(np.frombuffer(codes, dtype=np.uint8), count=n_codes * _CODE_BITS)
    numbers = bits.reshape(n_codes, _CODE_BITS) @ (1 << np.arange(_CODE_BITS)[::-1]).astype(np.uint16)
    strings, unpacked, previous = [bytes([i]) for i in range(256)], bytearray(), b""
    for code in numbers.tolist():
        if code > _LAST_CODE:
            break
        if code > len(strings) or (code == len(strings) and not previous):
            raise RecordingError("its compressed leads are damaged")
        string = strings[code] if code < len(strings) else previous + previous[:1]
        if previous and len(strings) <= _LAST_CODE:
            strings.append(previous + string[:1])
        unpacked += string
        if len(unpacked) > most:
            raise RecordingError(f"its compressed leads unpack to more than {_UNPACKED_BYTES} bytes")
        previous = string
    return bytes(unpacked)


def _integrate(unpacked: bytes, first: int) -> NDArray[np.float64]:
    """Samples from their second differences: all high bytes, then all low ones; the first two are samples themselves.

    s[i + 1] = 2 s[i] - s[i - 1] - (d[i] - 64), with `first` in place of d[1] - 64.
    """
    padded = unpacked + b"\0" * (len(unpacked) % 2)
    high, low = np.frombuffer(padded, dtype=np.uint8).reshape(2, -1).astype(np.uint16)
    stored = (high << 8 | low).astype(np.int16).astype(np.int64)
    if len(stored) < 3:
        raise RecordingError("its compressed leads are damaged")
    second = np.concatenate([[first], stored[2:-1] - 64])
    slopes = stored[1] - stored[0] - np.cumsum(second)
    samples = np.concatenate([stored[:2], stored[1] + np.cumsum(slopes)])
    if np.abs(samples).max() > _LARGEST:
        raise RecordingError("its compressed leads are damaged")
    return samples.astype(np.float64)


def _restore_limb_leads(labels: list[str], leads: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Restore limb leads, which are stored as residuals of Einthoven's and Goldberger's rules."""
    shortest = min(map(len, leads), default=0)
    found = {label: lead[:shortest] for label, lead in zip(labels, leads, strict=True)}
    if not {"III", "aVR", "aVL", "aVF"} & found.keys():
        return leads
    if not {"I", "II"} <= found.keys():
        raise RecordingError("its compressed limb leads cannot be restored without I and II")
    one, two = found["I"], found["II"]
    three = two - one - found.get("III", 0.0)
    rules = {
        "III": lambda left: two - one - left,
        "aVR": lambda left: -np.floor((one + two) / 2) - left,
        "aVL": lambda left: np.floor((one - three) / 2) - left,
        "aVF": lambda left: np.floor((two + three) / 2) - left,
    }
    return [rules[label](found[label]) if label in rules else found[label] for label in labels]
