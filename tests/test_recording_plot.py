"""Drawing a recording from Python."""

from dataclasses import replace

import pytest

import ecgquorum as eq
from ecgquorum.errors import DrawingError
from ecgquorum.recordings import Acquisition


@pytest.fixture
def recording():
    return eq.simulate("A", seed=5, seconds=6, leads=("ECG",), noise=0.5).recording


def test_a_recording_is_drawn_and_saved(recording, tmp_path):
    plot = eq.plot_recording(recording, eq.Page(start_s=2.0))
    assert (plot.layout, plot.span_s, plot.answer) == ("rows", (2.0, 6.0), "")
    for name, start in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")):
        assert plot.save(tmp_path / name).read_bytes().startswith(start)


def test_with_an_ensemble_its_answer_is_drawn_with_calibrated_probability(recording, tiny_ensemble):
    plot = eq.plot_recording(recording, ensemble=tiny_ensemble)
    prediction = tiny_ensemble.predict(recording)
    assert f"predicts {prediction.labels[0]}" in plot.answer
    assert f"probability {prediction.probs[0].max():.2f}" in plot.answer


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ({"speed_mm_per_s": 30}, "speed: expected 12.5, 25, 50 mm/s, found 30"),
        ({"gain_mm_per_mv": 15}, "gain: expected 5, 10, 20 mm/mV, found 15"),
        ({"layout": "2x6"}, "2x6"),
        ({"start_s": 60.0}, "60"),
    ],
)
def test_a_wrong_page_is_an_error(recording, page, reason):
    with pytest.raises(DrawingError, match=reason):
        eq.plot_recording(recording, eq.Page(**page))


def texts(plot):
    return " | ".join(text.get_text() for ax in plot.figure.axes for text in ax.texts)


def test_patient_and_acquisition_are_drawn_on_request_and_the_heart_rate_always(recording):
    known = replace(recording, acquisition=Acquisition("P-17", sex="F", device="H12"), notes=("a pulse was removed",))
    assert "id P-17, female; H12; " in texts(eq.plot_recording(known, identify=True))
    shown = texts(eq.plot_recording(known))
    assert "P-17" not in shown and "H12" not in shown
    assert "/min, RR irregularity 0." in shown and "a pulse was removed" in shown
