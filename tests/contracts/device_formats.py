"""One recording in the formats of devices, written from their specifications; all state the same patient and time."""

import base64
import binascii
import json
import struct

import edfio
import numpy as np
import wfdb

from ecgquorum.recordings import Acquisition

FACTS = Acquisition("p7", "Doe Jane", "female", "1950-01-31", None, "2020-03-04T05:06:07")
SCP_CODES = {"I": 1, "II": 2} | {f"V{i}": i + 2 for i in range(1, 7)} | {"III": 61, "aVR": 62, "aVL": 63, "aVF": 64}
ISHNE_CODES = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def microvolts(recording):
    return np.rint(recording.signal * 1000).astype(np.int16)


def write_bdf(recording, path):
    signals = [
        edfio.BdfSignal(row, recording.rate_hz, label=lead, physical_dimension="mV", physical_range=(-9, 9))
        for row, lead in zip(recording.signal.astype(np.float64), recording.leads, strict=True)
    ]
    edfio.Bdf(signals).write(path / "made.bdf")
    return path / "made.bdf"


def write_flac(recording, path):
    """Eight leads in a file: FLAC holds no more channels."""
    n_leads = len(recording.leads)
    wfdb.Record(
        record_name="made",
        n_sig=n_leads,
        fs=recording.rate_hz,
        sig_len=recording.n_samples,
        file_name=[f"made_{i // 8}.dat" for i in range(n_leads)],
        fmt=["516"] * n_leads,
        adc_gain=[1000.0] * n_leads,
        baseline=[0] * n_leads,
        units=["mV"] * n_leads,
        sig_name=list(recording.leads),
        d_signal=microvolts(recording).T.astype(np.int64),
        samps_per_frame=[1] * n_leads,
        adc_res=[16] * n_leads,
        adc_zero=[0] * n_leads,
        init_value=microvolts(recording)[:, 0].tolist(),
        checksum=[0] * n_leads,
        block_size=[0] * n_leads,
        byte_offset=[None] * n_leads,
        skew=[None] * n_leads,
    ).wrsamp(write_dir=str(path))
    return path / "made.hea"


def write_segments(recording, path):
    """Two segments of a record with a fixed layout."""
    half = recording.n_samples // 2
    for name, part in (("made_1", recording.signal[:, :half]), ("made_2", recording.signal[:, half:])):
        write_segment(path, name, part, recording)
    (path / "made.hea").write_text(
        f"made/2 {len(recording.leads)} {recording.rate_hz:g} {recording.n_samples}\n"
        f"made_1 {half}\nmade_2 {recording.n_samples - half}\n"
    )
    return path / "made.hea"


def write_segment(path, name, signal, recording, leads=None):
    leads = list(leads or recording.leads)
    wfdb.wrsamp(
        name,
        fs=recording.rate_hz,
        units=["mV"] * len(leads),
        sig_name=leads,
        d_signal=np.rint(np.asarray(signal) * 1000).astype(np.int64).T,
        adc_gain=[1000.0] * len(leads),
        baseline=[0] * len(leads),
        fmt=["24"] * len(leads),
        write_dir=str(path),
    )


def write_scp(recording, path, chunks=None, difference=0, first=1):
    """Sections 1 (patient), 3 (leads) and 6 (rhythm), and 2 where the samples are Huffman codes."""
    stored = microvolts(recording)
    last = first + recording.n_samples - 1 if first else recording.n_samples
    leads = bytes([len(stored), len(stored) << 3 | 4])
    leads += b"".join(struct.pack("<IIB", first, last, SCP_CODES[lead]) for lead in recording.leads)
    parts = chunks or [row.astype("<i2").tobytes() for row in stored]
    rhythm = struct.pack("<HHBB", 1000, round(1e6 / recording.rate_hz), difference, 0)
    rhythm += struct.pack(f"<{len(parts)}H", *map(len, parts)) + b"".join(parts)
    bodies = {1: scp_patient(), 3: leads, 6: rhythm} | ({2: struct.pack("<H", 19999)} if chunks else {})
    (path / "made.scp").write_bytes(scp_file(bodies))
    return path / "made.scp"


def write_scp_huffman(recording, path):
    """Second differences in the default Huffman codes of the standard."""
    return write_scp(recording, path, [huffman(row.astype(int)) for row in microvolts(recording)], difference=2)


def huffman(samples):
    second = np.concatenate([samples[:2], np.diff(samples, 2)])
    bits = "".join(map(huffman_code, second.tolist()))
    return int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")


def huffman_code(value):
    if value == 0:
        return "0"
    if abs(value) <= 8:
        return "1" * abs(value) + "0" + ("1" if value < 0 else "0")
    if -128 <= value < 128:
        return "1111111110" + f"{value & 0xFF:08b}"
    return "1111111111" + f"{value & 0xFFFF:016b}"


def scp_patient():
    tags = {0: b"Doe\0", 1: b"Jane\0", 2: b"p7\0", 5: struct.pack("<HBB", 1950, 1, 31), 8: b"\x02"}
    tags |= {25: struct.pack("<HBB", 2020, 3, 4), 26: bytes([5, 6, 7])}
    return b"".join(struct.pack("<BH", tag, len(value)) + value for tag, value in tags.items()) + b"\xff\0\0"


def scp_file(bodies):
    """A file of these sections, with section 0 in front."""

    def section(number, body):
        rest = struct.pack("<HIBB6x", number, 16 + len(body), 13, 13) + body
        return struct.pack("<H", binascii.crc_hqx(rest, 0xFFFF)) + rest

    numbers = range(12)
    size_0 = 16 + 10 * len(numbers)
    place, pointers, rest = 7 + size_0, struct.pack("<HII", 0, size_0, 7), b""
    for number in numbers[1:]:
        one = section(number, bodies[number]) if number in bodies else b""
        pointers += struct.pack("<HII", number, len(one), place if one else 0)
        rest, place = rest + one, place + len(one)
    content = section(0, pointers) + rest
    sized = struct.pack("<I", 6 + len(content)) + content
    return struct.pack("<H", binascii.crc_hqx(sized, 0xFFFF)) + sized


def write_ishne(recording, path):
    n_leads = len(recording.leads)
    header = bytearray(512)
    struct.pack_into("<iiiih", header, 0, 0, recording.n_samples, 522, 522, 1)
    header[18:22], header[58:61], header[98:100] = b"Jane", b"Doe", b"p7"
    struct.pack_into("<hh3h3h", header, 118, 2, 0, 31, 1, 1950, 4, 3, 2020)
    struct.pack_into("<3h3hh", header, 134, 4, 3, 2020, 5, 6, 7, n_leads)
    codes = [ISHNE_CODES.index(lead) + 5 for lead in recording.leads] + [-9] * (12 - n_leads)
    struct.pack_into("<12h12h12h", header, 148, *codes, *[1] * 12, *[1000] * 12)
    struct.pack_into("<h", header, 262, round(recording.rate_hz))
    checksum = binascii.crc_hqx(bytes(header), 0xFFFF)
    samples = microvolts(recording).T.astype("<i2").tobytes()
    (path / "made.ecg").write_bytes(b"ISHNE1.0" + struct.pack("<H", checksum) + bytes(header) + samples)
    return path / "made.ecg"


def write_mfer(recording, path):
    """Big-endian, one block of all samples for each channel, channels named by their codes."""

    def field(tag, value):
        length = bytes([len(value)]) if len(value) < 128 else b"\x84" + struct.pack(">I", len(value))
        return tag + length + value

    channels = b"".join(
        field(b"\x3f" + bytes([number]), field(b"\x09", struct.pack(">H", SCP_CODES[lead])))
        for number, lead in enumerate(recording.leads)
    )
    content = (
        field(b"\x40", b"MFR Standard 12 lead ECG".ljust(32))
        + field(b"\x01", b"\0")
        + field(b"\x82", b"p7")
        + field(b"\x81", b"Doe^^Jane^^^")
        + field(b"\x83", struct.pack(">BHHBB", 0, 0, 1950, 1, 31))
        + field(b"\x84", b"\x02")
        + field(b"\x85", struct.pack(">HBBBBBHH", 2020, 3, 4, 5, 6, 7, 0, 0))
        + field(b"\x08", b"\x01")
        + field(b"\x0b", struct.pack(">BbH", 0, 0, round(recording.rate_hz)))
        + field(b"\x0c", struct.pack(">BbH", 0, -6, 1))
        + field(b"\x04", struct.pack(">I", recording.n_samples))
        + field(b"\x05", struct.pack(">H", len(recording.leads)))
        + field(b"\x06", struct.pack(">H", 1))
        + channels
        + field(b"\x1e", microvolts(recording).astype(">i2").tobytes())
        + b"\x80\0"
    )
    (path / "made.mwf").write_bytes(content)
    return path / "made.mwf"


def write_mortara(recording, path):
    channels = "".join(
        f'<CHANNEL OFFSET="0" BITS="16" FORMAT="SIGNED" UNITS_PER_MV="1000" DURATION="{recording.n_samples}" '
        f'SAMPLE_FREQ="{recording.rate_hz:g}" ENCODING="BASE64" NAME="{lead}" '
        f'DATA="{base64.b64encode(row.astype("<i2").tobytes()).decode()}"/>'
        for lead, row in zip(recording.leads, microvolts(recording), strict=True)
    )
    (path / "made.xml").write_text(
        '<?xml version="1.0"?><ECG ACQUISITION_TIME="20200304050607" VENT_RATE="60" NUM_QRS="4">'
        '<SUBJECT LAST_NAME="Doe" FIRST_NAME="Jane" ID="p7" GENDER="Female" DOB="19500131"/>'
        f'<SOURCE TYPE="ELECTROCARDIOGRAPH" MANUFACTURER="Mortara" MODEL="ELI 250"/>{channels}</ECG>'
    )
    return path / "made.xml"


def write_kardia(recording, path):
    names = {"I": "leadI", "II": "leadII", "III": "leadIII", "aVR": "AVR", "aVL": "AVL", "aVF": "AVF"}
    samples = {
        names.get(lead, lead): row.tolist() for lead, row in zip(recording.leads, microvolts(recording), strict=True)
    }
    block = {"frequency": recording.rate_hz, "mainsFrequency": 50, "amplitudeResolution": 1000, "samples": samples}
    document = {
        "id": "x1",
        "patientID": "p7",
        "recordedAt": "2020-03-04T05:06:07Z",
        "algorithmDetermination": "normal",
        "data": {"raw": block},
    }
    (path / "made.json").write_text(json.dumps(document))
    return path / "made.json"


def write_atc(recording, path):
    """The six limb leads, which is all that the format holds."""

    def block(name, data):
        content = name + struct.pack("<I", len(data)) + data
        return content + struct.pack("<I", sum(content))

    info = b"2020-03-04T05:06:07Z".ljust(180, b"\0") + b"KardiaMobile 6L".ljust(84, b"\0")
    content = block(b"info", info) + block(b"fmt ", struct.pack("<BHHBH", 1, round(recording.rate_hz), 1000, 0, 0))
    names = {"I": b"ecg ", "II": b"ecg2", "III": b"ecg3", "aVR": b"ecg4", "aVL": b"ecg5", "aVF": b"ecg6"}
    for lead, name in names.items():
        if lead in recording.leads:
            row = microvolts(recording)[recording.leads.index(lead)]
            content += block(name, row.astype("<i2").tobytes())
    (path / "made.atc").write_bytes(b"ALIVE\0\0\0\x03\0\0\0" + content)
    return path / "made.atc"


DEVICE_WRITERS = [
    write_bdf,
    write_flac,
    write_segments,
    write_scp,
    write_scp_huffman,
    write_ishne,
    write_mfer,
    write_mortara,
    write_kardia,
    write_atc,
]
