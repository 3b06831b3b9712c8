"""Uploads that are accepted or refused by what is in the file."""

import json

import numpy as np

from ecgquorum import Recording, simulate
from ecgquorum.service.uploads import KNOWN_ENDINGS

from ..contracts.device_formats import write_kardia, write_segments
from .conftest import put


def made(lead="I"):
    return Recording("made", simulate("N", seed=1, seconds=6, leads=("ECG",)).recording.signal, 300.0, (lead,))


def test_kardia_json_is_a_recording_and_other_json_is_not(client, tmp_path):
    path = write_kardia(made(), tmp_path)
    assert path.suffix == ".json" and ".json" in KNOWN_ENDINGS
    accepted = put(client, path)
    assert accepted.status_code in (200, 201) and accepted.json()["state"] == "waiting", accepted.json()
    (tmp_path / "other.json").write_text(json.dumps({"samples": np.zeros(9).tolist()}))
    refused = put(client, tmp_path / "other.json")
    assert refused.status_code == 415 and "other.json: no recording by its content" in refused.json()["detail"]


def test_parts_of_a_multi_segment_record_never_wait(client, tmp_path):
    """The header and the layout are refused at once; each segment is a recording of its own."""
    whole = write_segments(made(), tmp_path)
    (tmp_path / "layout.hea").write_text("layout 1 300 0\n~ 0 1000/mV 16 0 0 0 0 I\n")
    for path in (whole, tmp_path / "layout.hea"):
        refused = put(client, path)
        assert refused.status_code == 422 and "multi-segment WFDB record" in refused.json()["detail"]
        assert "ecgquorum convert" in refused.json()["detail"]
    for name in ("made_1.hea", "made_1.dat", "made_2.dat", "made_2.hea"):
        assert put(client, tmp_path / name).status_code in (200, 201)
    states = [one["state"] for one in client.get("/api/recordings").json()["cases"]]
    assert len(states) == 2 and "incomplete" not in states
