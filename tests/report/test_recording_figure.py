"""Sheets are true to scale in every file format: a second is 25 mm, a millivolt 10 mm."""

import io
import re
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from ecgquorum import Recording, simulate
from ecgquorum.errors import DrawingError
from ecgquorum.report import MapOverlay, recording_figure, write_sheet
from ecgquorum.report.ecg_paper import STANDARD, Scale, arrange_leads, lay_out

MM_PER_PT = 25.4 / 72
SCALES = [STANDARD, Scale(50.0, 20.0), Scale(12.5, 5.0)]


def spiked(spikes_s=(1.0, 2.0), seconds=5.0, rate_hz=500.0):
    """Nothing but a spike of 1 mV at each of these times."""
    signal = np.zeros((1, round(seconds * rate_hz)))
    signal[0, [round(at * rate_hz) for at in spikes_s]] = 1.0
    return Recording("spiked", signal, rate_hz, ("ECG",))


def written(tmp_path, ending, recording, scale=STANDARD, **more):
    drawn, layout = arrange_leads(recording)
    path = tmp_path / f"sheet{ending}"
    write_sheet(recording_figure(drawn, lay_out(drawn, layout, scale), **more), path)
    return path


def svg_lines_mm(path):
    """Every line in the ink of traces, as (point, 2) in millimetres from the upper left; the size of the sheet."""
    root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 (written a moment ago)
    assert root.get("width").endswith("pt")
    size = [float(root.get(side).removesuffix("pt")) * MM_PER_PT for side in ("width", "height")]
    assert root.get("viewBox").split()[2:] == [root.get(side).removesuffix("pt") for side in ("width", "height")]
    inked = [e for e in root.iter("{http://www.w3.org/2000/svg}path") if "stroke: #111111" in (e.get("style") or "")]
    return [np.array(re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", e.get("d")), dtype=float) * MM_PER_PT for e in inked], size


def pdf_lines_mm(path):
    """The same of a PDF, whose y goes up."""
    content = path.read_bytes()
    box = [float(n) for n in re.search(rb"/MediaBox \[([^\]]*)\]", content)[1].split()]
    page = zlib.decompress(max(re.findall(rb"stream\r?\n(.*?)endstream", content, re.DOTALL), key=len)).decode(
        "latin-1"
    )
    inked = re.findall(r"0\.0666666667 G[^\n]*\s+((?:[-\d.]+ [-\d.]+ [ml]\s+)+)S", page)
    lines = [np.array(re.findall(r"([-\d.]+) ([-\d.]+) [ml]", line), dtype=float) * MM_PER_PT for line in inked]
    return lines, [side * MM_PER_PT for side in box[2:]]


def assert_to_scale(lines, size, scale):
    assert size[0] == pytest.approx(297, abs=0.01)
    (pulse,) = [line for line in lines if len(line) == 6]
    assert np.ptp(pulse[:, 1]) == pytest.approx(scale.mm_per_mv, abs=0.01)
    assert pulse[3, 0] - pulse[1, 0] == pytest.approx(0.2 * scale.mm_per_s, abs=0.01)
    (trace,) = [line for line in lines if len(line) > 6]
    height = np.abs(trace[:, 1] - trace[0, 1])
    peaks = trace[np.flatnonzero(height > 0.9 * height.max()), 0]
    assert height.max() == pytest.approx(scale.mm_per_mv, abs=0.05)
    assert peaks.max() - peaks.min() == pytest.approx(scale.mm_per_s, abs=0.05)
    assert peaks.min() - trace[0, 0] == pytest.approx(scale.mm_per_s, abs=0.05)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_an_svg_measures_what_it_says(tmp_path, scale):
    assert_to_scale(*svg_lines_mm(written(tmp_path, ".svg", spiked(), scale)), scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_pdf_measures_what_it_says(tmp_path, scale):
    assert_to_scale(*pdf_lines_mm(written(tmp_path, ".pdf", spiked(), scale)), scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_png_carries_its_dpi_and_measures_what_it_says(tmp_path, scale):
    with Image.open(written(tmp_path, ".png", spiked(), scale)) as image:
        dpi = image.info["dpi"]
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert dpi == pytest.approx((254, 254), abs=0.01)
    per_mm = dpi[0] / 25.4
    assert pixels.shape[1] == pytest.approx(297 * per_mm, abs=1)
    reddish = (pixels[..., 0] - pixels[..., 2]) > 20
    top, *_, bottom = np.flatnonzero(reddish.sum(axis=1) > 1000)  # where the grid begins and ends
    dark = pixels.max(axis=2) < 110
    dark[:top], dark[bottom:] = False, False
    left = round(13.5 * per_mm)
    name = slice(left + round(15.5 * per_mm), left + round(25 * per_mm))
    dark[: top + round(12 * per_mm), name] = False
    pulse = dark[:, left : left + round(14 * per_mm)]
    rows = np.flatnonzero(pulse.any(axis=1))
    assert rows[-1] - rows[0] == pytest.approx(scale.mm_per_mv * per_mm, abs=4)
    baseline = np.flatnonzero(dark[:, left + round(15.2 * per_mm)])
    high = dark[round(baseline.mean()) - round(0.7 * scale.mm_per_mv * per_mm), left + round(15 * per_mm) :]
    columns = np.flatnonzero(high)
    assert columns[-1] - columns[0] == pytest.approx(scale.mm_per_s * per_mm, abs=4)
    assert columns[0] == pytest.approx(scale.mm_per_s * per_mm, abs=4)


def test_thin_and_thick_lines_every_millimetre_and_every_five(tmp_path):
    drawn, layout = arrange_leads(spiked())
    figure = recording_figure(drawn, lay_out(drawn, layout))
    thin, thick = figure.axes[0].collections
    for lines, step in ((thin, 1), (thick, 5)):
        upright = sorted({s[0][0] for s in lines.get_segments() if s[0][0] == s[1][0]})
        np.testing.assert_allclose(upright, np.arange(0, 271, step))
    assert thin.get_linewidth()[0] < thick.get_linewidth()[0]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_sheet_shows_scale_class_and_quality():
    drawn, layout = arrange_leads(simulate("AF", seed=1, seconds=10, rate_hz=250).recording)
    values = np.random.default_rng(0).uniform(size=(2, 12, drawn.n_samples))
    beneath = MapOverlay(
        values, drawn.leads, "the model says AF", ("member 0: AF 0.9", "member 1: N 0.6"), "how it is made"
    )
    sheet = lay_out(drawn, layout, mapped=drawn.leads, n_maps=2)
    figure = recording_figure(drawn, sheet, notes=("III derived",), doubts=("mains on II", "x"), overlay=beneath)
    said = "\n".join(texts(figure))
    for expected in (
        *drawn.leads,
        drawn.id,
        "25 mm/s, 10 mm/mV",
        "10.0 s at 250 Hz; drawn from 0 to 10 s",
        "no filter; each lead about its median; III derived",
        "Doubtful: mains on II (and 1 more)",
        "the model says AF",
        "member 0: AF 0.9 · member 1: N 0.6",
        "how it is made",
        "Not a medical device",
    ):
        assert expected in said
    bands = [image.get_extent() for image in figure.axes[0].images][:-1]  # the last one is the key
    assert len(bands) == 2 * 13
    assert all(low >= 0 for _, _, low, _ in bands)


def test_a_map_is_drawn_where_its_time_and_lead_are():
    drawn, layout = arrange_leads(simulate("N", seed=1, seconds=10, rate_hz=500).recording)
    values = np.zeros((1, 1, drawn.n_samples))
    values[0, 0, 3000:3500] = 1  # 6 to 7 s of V2, which is drawn from 5 to 7.5 s
    sheet = lay_out(drawn, layout, mapped=("V2",), n_maps=1)
    figure = recording_figure(drawn, sheet, overlay=MapOverlay(values, ("V2",), "", ("",), ""))
    (band,) = figure.axes[0].images[:-1]
    left, right, _, high = band.get_extent()
    shades = np.asarray(band.get_array())[0]
    marked = left + (right - left) * (np.flatnonzero(shades > 0.5) + 0.5) / len(shades)
    assert (marked.min(), marked.max()) == pytest.approx((15 + 150, 15 + 175), abs=0.3)
    assert high < sheet.rows[1].baseline_mm


def test_implausible_signals_are_drawn(tmp_path):
    signal = np.zeros((3, 2000), dtype=np.float32)
    signal[0] = np.nan
    signal[1, ::7], signal[1, 5] = np.nan, np.inf
    signal[2, 100:] = 3e38
    odd = Recording("$odd_{name}$ \x07 心電図", signal, 200.0, ("A", "B", "C"))
    assert b"<svg" in written(tmp_path, ".svg", odd).read_bytes()
    one = Recording("one sample", np.zeros((1, 1)), 200.0, ("ECG",))
    assert written(tmp_path, ".pdf", one).stat().st_size > 1000


def test_the_same_sheet_gives_the_same_bytes_and_other_endings_are_refused(tmp_path):
    for ending in (".png", ".svg", ".pdf"):
        first = written(tmp_path, ending, spiked()).read_bytes()
        assert written(tmp_path, ending, spiked()).read_bytes() == first
    with Image.open(io.BytesIO(written(tmp_path, ".PNG", spiked()).read_bytes())) as image:
        assert image.format == "PNG"
    with pytest.raises(DrawingError, match=r"must end in .png, .svg, .pdf, not in .gif"):
        written(tmp_path, ".gif", spiked())
    (tmp_path / "d.png").mkdir()
    with pytest.raises(DrawingError, match="is a folder"):
        write_sheet(recording_figure(spiked(), lay_out(spiked(), "rows")), tmp_path / "d.png")
