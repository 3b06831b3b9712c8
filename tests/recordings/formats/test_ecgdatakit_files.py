"""Formats that the `ecgdatakit` package parses."""

import json
import struct
import sys

import numpy as np
import pytest

from ecgquorum import Recording, read, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import STANDARD_LEADS

from ...contracts.device_formats import (
    microvolts,
    scp_file,
    scp_patient,
    write_ishne,
    write_kardia,
    write_mfer,
    write_mortara,
    write_scp,
)

WRITERS = [write_scp, write_ishne, write_mfer, write_mortara, write_kardia]


@pytest.fixture
def recording():
    made = simulate("N", seed=1, seconds=2.0, rate_hz=250.0).recording
    return Recording("made", np.round(made.signal, 3), 250.0, STANDARD_LEADS)


@pytest.mark.parametrize("write_it", WRITERS)
def test_without_the_extra_the_error_says_what_to_install(recording, tmp_path, monkeypatch, write_it):
    path = write_it(recording, tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "ecgdatakit"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ecgdatakit", None)
    with pytest.raises(
        RecordingError, match=rf"{path.name}: .* not installed: pip install 'ecgquorum\[formats\]'"
    ) as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("write_it", [write_scp, write_ishne, write_kardia])
def test_files_are_found_by_content(recording, tmp_path, write_it):
    write_it(recording, tmp_path).rename(tmp_path / "recording.bin")
    np.testing.assert_allclose(read(tmp_path / "recording.bin").signal, recording.signal, atol=1e-6)


def test_json_of_another_kind_is_no_recording(tmp_path):
    (tmp_path / "settings.json").write_text('{"name": "x", "data": [1, 2]}')
    with pytest.raises(RecordingError, match="found none of them"):
        read(tmp_path / "settings.json")


def test_scp_samples_that_are_counted_from_0_are_read_with_a_note(recording, tmp_path):
    found = read(write_scp(recording, tmp_path, first=0))
    np.testing.assert_allclose(found.signal, recording.signal, atol=1e-6)
    assert len(found.notes) == 1 and "count samples from 0" in found.notes[0]


def test_a_wrong_checksum_is_noted(recording, tmp_path):
    path = write_scp(recording, tmp_path)
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    assert read(path).notes == ("SCP-ECG CRC mismatch in: record",)


def test_scp_leads_may_begin_at_different_samples(tmp_path):
    """As in reports of 3 x 4 leads: each group of leads has its own seconds."""
    rows = [np.arange(100, dtype="<i2"), np.arange(50, dtype="<i2")]
    leads = bytes([2, 0]) + struct.pack("<IIB", 1, 100, 1) + struct.pack("<IIB", 51, 100, 2)
    rhythm = struct.pack("<HHBB2H", 1000, 4000, 0, 0, 200, 100) + b"".join(row.tobytes() for row in rows)
    (tmp_path / "a.scp").write_bytes(scp_file({1: scp_patient(), 3: leads, 6: rhythm}))
    found = read(tmp_path / "a.scp", as_stated=True)
    assert np.isnan(found.signal[1]).tolist() == [True] * 50 + [False] * 50
    np.testing.assert_allclose(found.signal[1, 50:], rows[1] / 1000, atol=1e-6)


def test_scp_calibration_leads_are_left_out(tmp_path):
    leads = bytes([2, 0b10100]) + struct.pack("<IIB", 1, 100, 1) + struct.pack("<IIB", 1, 100, 31)
    rhythm = struct.pack("<HHBB2H", 1000, 4000, 0, 0, 200, 200) + np.arange(200, dtype="<i2").tobytes()
    (tmp_path / "a.scp").write_bytes(scp_file({3: leads, 6: rhythm}))
    found = read(tmp_path / "a.scp", as_stated=True)
    assert (found.leads, found.notes) == (("I",), ("left out, no ECG leads: I-cal",))


@pytest.mark.parametrize("last", [10**6, 0xFFFFFFFF])
def test_false_numbers_of_scp_samples_are_refused_before_allocation(tmp_path, last):
    leads = bytes([1, 0b1100]) + struct.pack("<IIB", 1, last, 1)
    rhythm = struct.pack("<HHBBH", 1000, 4000, 0, 0, 200) + bytes(200)
    (tmp_path / "a.scp").write_bytes(scp_file({2: struct.pack("<H", 19999), 3: leads, 6: rhythm}))
    with pytest.raises(RecordingError, match=f"a.scp: expected samples that fit .* found {last} declared"):
        read(tmp_path / "a.scp")


def test_a_fractional_rate_is_exact(recording, tmp_path):
    """3,906 us: the package rounds to 256 Hz."""
    found = read(write_scp(Recording("made", recording.signal, 1e6 / 3906, STANDARD_LEADS), tmp_path))
    assert found.rate_hz == pytest.approx(1e6 / 3906, rel=1e-12)


def test_lead_faults_of_ishne_are_missing(recording, tmp_path):
    path = write_ishne(recording, tmp_path)
    content = bytearray(path.read_bytes())
    place = 522 + 2 * (12 * 7 + 3)  # sample 7 of lead 3
    content[place : place + 2] = struct.pack("<h", -32768)
    path.write_bytes(content)
    assert np.argwhere(np.isnan(read(path).signal)).tolist() == [[3, 7]]


def test_an_mfer_file_of_an_eeg_is_refused(recording, tmp_path):
    path = write_mfer(recording, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\x08\x01\x01", b"\x08\x01\x28"))
    with pytest.raises(RecordingError, match=r"expected an ECG, found waveforms of the MFER types \[40\]"):
        read(path)


def test_kardia_takes_the_unfiltered_leads(recording, tmp_path):
    path = write_kardia(recording, tmp_path)
    document = json.loads(path.read_text())
    filtered = {key: [0] * recording.n_samples for key in document["data"]["raw"]["samples"]}
    document["data"]["enhanced"] = document["data"]["raw"] | {"samples": filtered}
    document["data"]["raw"]["frequency"] = 249.5
    path.write_text(json.dumps(document))
    found = read(path)
    assert found.rate_hz == 249.5
    np.testing.assert_allclose(found.signal, microvolts(recording) / 1000, atol=1e-6)
