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
