import numpy as np
import pytest

from ecgquorum import Recording
from ecgquorum.errors import RecordingError


def test_one_lead_may_be_given_as_a_plain_array():
    recording = Recording("a", np.arange(500.0), 250.0, ("avf",))
    assert recording.signal.shape == (1, 500)
    assert recording.signal.dtype == np.float32
    assert recording.leads == ("aVF",)
    assert recording.seconds == 2.0


@pytest.mark.parametrize(
    ("signal", "rate_hz", "leads", "reason"),
    [
        (np.zeros((2, 9)), 300.0, ("I",), "2 lead names"),
        (np.zeros((2, 9)), 300.0, ("I", "i"), "not unique"),
        (np.zeros((1, 0)), 300.0, ("I",), "shape"),
        (np.zeros((1, 1, 9)), 300.0, ("I",), "shape"),
        (np.zeros((1, 9)), 0.0, ("I",), "sampling rate"),
        (np.zeros((1, 9)), float("nan"), ("I",), "sampling rate"),
    ],
)
def test_invalid_recordings_are_refused_with_a_reason(signal, rate_hz, leads, reason):
    with pytest.raises(RecordingError, match=reason):
        Recording("a", signal, rate_hz, leads, source="file.x")
