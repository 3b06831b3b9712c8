import struct

import numpy as np
import pytest

from ecgquorum import Recording, read, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import STANDARD_LEADS

from ...contracts.device_formats import write_atc


@pytest.fixture
def path(tmp_path):
    made = simulate("N", seed=1, seconds=2.0, rate_hz=300.0).recording
    return write_atc(Recording("made", np.round(made.signal[:1], 3), 300.0, STANDARD_LEADS[:1]), tmp_path)


def test_one_lead_is_lead_one(path):
    found = read(path)
    assert (found.leads, found.rate_hz, found.unit) == (("I",), 300.0, "nV")


def test_a_wrong_checksum_is_damage(path):
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="made.atc: the checksum of its block 'ecg' is wrong"):
        read(path)


def test_files_without_samples_or_format_are_refused(path):
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"ecg ")])
    with pytest.raises(RecordingError, match="expected leads of one length, found none"):
        read(path)
    path.write_bytes(content[:12] + content[content.index(b"ecg ") :])
    with pytest.raises(RecordingError, match="a format block, found none"):
        read(path)


def test_a_block_of_false_length_is_refused(path):
    content = bytearray(path.read_bytes())
    place = content.index(b"ecg ") + 4
    content[place : place + 4] = struct.pack("<I", 0xFFFFFFFF)
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="found the file cut short"):
        read(path)


def test_files_are_found_by_content(path, tmp_path):
    path.rename(tmp_path / "recording.bin")
    assert read(tmp_path / "recording.bin").leads == ("I",)


def replace_block(path, name, data):
    """The same file with other data in a block, and the checksum that belongs to them."""
    content = path.read_bytes()
    place = content.index(name)
    (length,) = struct.unpack_from("<I", content, place + 4)
    block = name + struct.pack("<I", len(data)) + data
    path.write_bytes(content[:place] + block + struct.pack("<I", sum(block)) + content[place + 12 + length :])


def test_fields_that_fill_their_bytes_do_not_run_into_the_next(path):
    info = b"2020-03-04T05:06:07.000000000Z" + b"  " + b"u" * 148 + b"k" * 32 + b"s" * 52
    replace_block(path, b"info", info)
    found = read(path).acquisition
    assert found.time == "2020-03-04T05:06:07+00:00" and found.device == f"AliveCor {'k' * 32}"


def test_leads_of_different_lengths_are_refused(tmp_path):
    made = simulate("N", seed=1, seconds=2.0, rate_hz=300.0).recording
    path = write_atc(Recording("made", np.round(made.signal[:2], 3), 300.0, STANDARD_LEADS[:2]), tmp_path)
    replace_block(path, b"ecg2", bytes(80))
    with pytest.raises(RecordingError, match=r"expected leads of one length, found \[40, 600\]"):
        read(path)
