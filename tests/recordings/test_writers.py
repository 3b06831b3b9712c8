"""A recording that a format cannot hold is refused in one line, and no file is left."""

import numpy as np
import pytest

from ecgquorum import Recording, read
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import write

SINE = np.sin(np.arange(991) / 9)
INFINITE = np.full(991, np.inf)


def recording(signal=SINE, leads=("II",), rate_hz=250.0):
    return Recording("r", signal, rate_hz, leads)


@pytest.mark.parametrize(
    ("name", "made", "reason"),
    [
        ("my.rec.hea", recording(), "letters, digits, - and _, found 'my.rec'"),
        ("my rec.hea", recording(), "letters, digits, - and _, found 'my rec'"),
        ("r.hea", recording([SINE, SINE * np.nan], ("I", "V1")), "samples on every lead, found none on V1"),
        ("r.hea", recording([SINE, INFINITE], ("I", "V1")), "samples on every lead, found none on V1"),
        ("r.hea", recording(leads=("\u00e4",)), "leads in ASCII"),
        ("r.edf", recording(leads=("\u00e4",)), "can hold"),
        ("r.edf", recording(rate_hz=257.3), "can hold"),
        ("r.edf", recording(SINE * 1e8), "can hold"),
        ("r.edf", recording(INFINITE), "no missing samples"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path, name, made, reason):
    with pytest.raises(RecordingError, match=f"{name}: .*{reason}") as caught:
        write(made, tmp_path / name)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert write(made, tmp_path / "r.npz").is_file()


def test_an_infinite_sample_is_a_missing_one(tmp_path):
    signal = SINE.copy()
    signal[5] = np.inf
    again = read(write(recording(signal), tmp_path / "r.hea"))
    assert np.flatnonzero(np.isnan(again.signal[0])).tolist() == [5]
    np.testing.assert_allclose(again.signal[0, 6:], SINE[6:], atol=1e-4)


@pytest.mark.parametrize(("name", "existing"), [("r.npz", "r.npz"), ("r.hea", "r.hea"), ("r.hea", "r.dat")])
def test_an_existing_file_is_replaced_only_on_request(tmp_path, name, existing):
    (tmp_path / existing).write_text("mine")
    made = recording(np.sin(np.arange(1000) / 20)[None])
    with pytest.raises(RecordingError, match=f"{existing}: the file exists already"):
        write(made, tmp_path / name)
    assert (tmp_path / existing).read_text() == "mine"
    write(made, tmp_path / name, overwrite=True)
    assert read(tmp_path / name).n_samples == 1000
