"""The viewer is true to scale on the screen and in print."""

import numpy as np
import pytest

from .site import GUTTER_MM, PX_PER_MM, heavy_lines, ink, picture, press, settle, upright_edges


@pytest.mark.parametrize(
    ("speed", "gain", "ratio"), [(25, 10, 1), (25, 10, 2), (50, 20, 1), (12.5, 5, 2), (25, 20, 1.5)]
)
def test_a_second_and_a_millivolt_have_their_millimetres(visit, speed, gain, ratio):
    page = visit("square", ratio=ratio)
    press(page, f"Paper speed {speed:g} mm/s")
    press(page, f"Gain {gain:g} mm/mV")
    pixels = picture(page)
    mm = PX_PER_MM * ratio
    for axis in (0, 1):
        lines = heavy_lines(pixels, axis)
        assert len(lines) > 5
        np.testing.assert_allclose(lines, np.arange(len(lines)) * 5 * mm, atol=1)

    row = slice(round(9.5 * mm), round((35 if gain == 20 else 30) * mm))  # below the lead's name
    pixels[:, : round(GUTTER_MM * mm)] = 255  # without the calibration pulse
    edges = upright_edges(pixels, row, 0.9 * gain * mm)
    rises = edges[::2][:3]
    assert np.diff(rises) == pytest.approx(speed * mm, abs=1)
    assert rises[0] == pytest.approx((GUTTER_MM + 0.5 * speed) * mm, abs=1)
    top, base = (np.flatnonzero(ink(pixels)[row, int(edges[i : i + 2].mean())])[0] for i in (0, 1))
    assert base - top == pytest.approx(gain * mm, abs=1)
    assert min(abs(heavy_lines(pixels, 0) - row.start - base)) <= 1  # at rest on a heavy line


@pytest.mark.parametrize("gain", [5, 20])
def test_every_row_has_a_calibration_pulse_of_one_millivolt(visit, gain):
    page = visit("square12")
    press(page, f"Gain {gain} mm/mV")
    for layout, n_rows in (("3×4+1", 4), ("6×2", 6), ("12×1", 12)):
        press(page, f"Layout {layout}")
        gutter = ink(picture(page))[:, : int(9 * PX_PER_MM)]
        upright = gutter[:, round(2 * PX_PER_MM)]
        starts = np.flatnonzero(np.diff(upright.astype(int), prepend=0) == 1)
        lengths = [np.argmin(np.append(upright[start:], False)) for start in starts]
        pulses = [length for length in lengths if length > 3 * PX_PER_MM]
        assert len(pulses) == n_rows
        assert pulses == pytest.approx([gain * PX_PER_MM] * n_rows, abs=1.5)


def test_the_reader_can_measure_the_screen_with_a_card(visit):
    page = visit("square", ratio=2)
    page.get_by_role("button", name="Screen size").click()
    page.get_by_label("Width of the bar").fill("428")  # 5 px a millimetre
    settle(page)
    assert page.locator(".ecg-card").bounding_box()["width"] == pytest.approx(428, abs=0.5)
    assert np.diff(heavy_lines(picture(page), 1)) == pytest.approx(50, abs=1)
    page.reload()
    page.locator(".ecg-stage").wait_for()
    assert np.diff(heavy_lines(picture(page), 1)) == pytest.approx(50, abs=1)
    page.get_by_role("button", name="Screen size").click()
    press(page, "Forget")
    assert np.diff(heavy_lines(picture(page), 1)).mean() == pytest.approx(10 * PX_PER_MM, abs=0.1)


def test_prints_are_true_to_scale_on_every_screen(visit):
    page = visit("square12", ratio=2)
    page.evaluate("() => localStorage.setItem('ecgquorum.devicePxPerMm', '5')")
    page.reload()
    page.locator(".ecg-stage").wait_for()
    press(page, "Larger")
    before = picture(page)
    page.evaluate(
        """() => { window.printed = 0; window.cleared = 0;
        window.addEventListener("beforeprint", () => window.printed++);
        const ink = document.querySelector(".ecg-ink").getContext("2d");
        const clear = ink.clearRect;
        ink.clearRect = (...where) => { window.cleared++; clear.apply(ink, where); }; }"""
    )
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    assert page.evaluate("[window.printed, window.cleared]") == [1, 0]  # clearing would erase the printed grid
    np.testing.assert_array_equal(picture(page), before)

    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert not page.locator(".ecg-toolbar").is_visible()
    assert "25 mm/s   10 mm/mV" in page.locator(".ecg-ink").get_attribute("aria-label")
    line = page.evaluate(
        """() => { const canvas = document.querySelector(".ecg-grid");
        const data = canvas.getContext("2d").getImageData(0, 7, canvas.width, 1).data;
        const blue = Array.from({ length: canvas.width }, (_, i) => data[4 * i + 2]);
        return [canvas.getBoundingClientRect().width, ...blue] }"""
    )
    width, blue = line[0], np.array(line[1:])
    heavy = np.flatnonzero(blue == 0xAC)
    heavy = heavy[np.diff(heavy, prepend=-10) > 1]
    np.testing.assert_allclose(heavy * width / len(blue), np.arange(len(heavy)) * 5 * PX_PER_MM, atol=0.5)
    page.emulate_media(media="screen")
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    np.testing.assert_array_equal(picture(page), before)
