"""The caliper measures correctly, by mouse and by keys."""

import re

import numpy as np
import pytest

from .site import GUTTER_MM, PX_PER_MM, ink, picture, press, settle, square_wave, upright_edges


def reading(page):
    """(ms, beats/min, mV) as the caliper's label says."""
    words = page.locator(".ecg-caliper-label").text_content()
    return tuple(float(number) for number in re.fullmatch(r"(\d+) ms +(\d+) beats/min +([\d.]+) mV", words).groups())


@pytest.mark.parametrize(("speed", "ratio"), [(25, 1), (50, 2)])
def test_the_caliper_reads_an_interval_that_is_drawn(visit, speed, ratio):
    page = visit("square", ratio=ratio)
    press(page, f"Paper speed {speed} mm/s")
    pixels = picture(page)
    pixels[:, : round(GUTTER_MM * PX_PER_MM * ratio)] = 255
    rises = upright_edges(pixels, slice(0, round(30 * PX_PER_MM * ratio)), 0.9 * 10 * PX_PER_MM * ratio)[::2]
    column = ink(pixels)[: round(30 * PX_PER_MM * ratio), int(rises[0])]
    top, base = np.flatnonzero(column)[[0, -1]]
    box = page.locator(".ecg-stage").bounding_box()
    press(page, "Caliper: measures ms, mV and beats a minute")
    page.mouse.move(box["x"] + (rises[0] + 0.5) / ratio, box["y"] + (base + 0.5) / ratio)
    page.mouse.down()
    page.mouse.move(box["x"] + (rises[1] + 0.5) / ratio, box["y"] + (top + 0.5) / ratio, steps=4)
    page.mouse.up()
    settle(page)
    ms, rate, mv = reading(page)
    px_ms = 1000 / (speed * PX_PER_MM)
    assert ms == pytest.approx(1000, abs=px_ms)
    assert rate == pytest.approx(60, abs=1)
    assert mv == pytest.approx(1, abs=1 / (10 * PX_PER_MM))


def test_the_caliper_works_with_keys_and_screen_readers(visit):
    page = visit("square12")
    page.locator(".ecg-stage").focus()
    page.keyboard.press("c")
    page.keyboard.press("Shift+ArrowUp")
    settle(page)
    assert reading(page) == (1000, 60, 1.0)
    page.locator(".ecg-spoken", has_text="1000 ms, 60 beats/min, 1.00 mV").wait_for(state="attached")
    for _ in range(10):
        page.keyboard.press("Shift+ArrowLeft")
    settle(page)
    assert reading(page) == (500, 120, 1.0)
    page.keyboard.press("Escape")
    assert not page.locator(".ecg-calipers").is_visible()
    assert page.evaluate("document.activeElement.className") == "ecg-stage"


def test_a_caliper_stays_on_its_beats(visit, site):
    page = visit(site.add("minute", square_wave(60), 500), width=500)
    page.locator(".ecg-stage").focus()
    page.keyboard.press("c")
    left = page.locator(".ecg-caliper-box").bounding_box()["x"]
    page.locator(".ecg-stage").focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    assert page.locator(".ecg-caliper-box").bounding_box()["x"] == pytest.approx(left - 5 * PX_PER_MM, abs=0.1)
    assert reading(page)[:2] == (1000, 60)


def drag(page, x0, x1, y=60):
    box = page.locator(".ecg-stage").bounding_box()
    page.mouse.move(box["x"] + x0, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + x1, box["y"] + y, steps=4)
    page.mouse.up()
    settle(page)


def test_several_calipers_stay_until_they_are_cleared(visit):
    page = visit("square12")
    clear = page.get_by_role("button", name="Clear all calipers")
    assert clear.is_disabled()
    press(page, "Caliper: measures ms, mV and beats a minute")
    for x in (100, 250, 400):
        drag(page, x, x + 25 * PX_PER_MM)
    labels = page.locator(".ecg-caliper-label")
    assert [text.split()[0] for text in labels.all_text_contents()] == ["1000"] * 3
    press(page, "Caliper: measures ms, mV and beats a minute")  # no longer measuring: a drag moves the paper
    assert labels.count() == 3
    page.locator(".ecg-caliper-handle").first.focus()
    page.keyboard.press("Delete")
    assert labels.count() == 2 and page.evaluate("document.activeElement.className") == "ecg-stage"
    clear.click()
    assert labels.count() == 0 and clear.is_disabled()


def test_a_double_click_magnifies_one_lead_and_another_shows_all(visit):
    page = visit("square12")
    box = page.locator(".ecg-stage").bounding_box()
    page.mouse.dblclick(box["x"] + 20 + 25 * PX_PER_MM * 3, box["y"] + 20)  # the second column of the first row
    settle(page)
    assert page.get_by_role("button", name="Show all leads again").is_visible()
    assert page.get_by_text("200 %").is_visible()
    page.mouse.dblclick(box["x"] + 200, box["y"] + 40)
    settle(page)
    assert not page.get_by_role("button", name="Show all leads again").is_visible()
    assert page.get_by_text("100 %").is_visible()
    page.locator(".ecg-stage").focus()
    for _ in range(12):
        page.keyboard.press("d")
    settle(page)
    assert page.get_by_role("button", name="Show all leads again").is_visible()
    page.keyboard.press("Escape")
    settle(page)
    assert not page.get_by_role("button", name="Show all leads again").is_visible()


def test_layout_speed_gain_and_zoom_are_remembered(visit):
    page = visit("square12")
    for name in ("Layout 6×2", "Paper speed 50 mm/s", "Gain 5 mm/mV", "Larger"):
        press(page, name)
    again = visit("square12")
    for name in ("Layout 6×2", "Paper speed 50 mm/s", "Gain 5 mm/mV"):
        assert again.get_by_role("button", name=name).get_attribute("aria-pressed") == "true"
    assert again.get_by_text("125 %").is_visible()
    other = visit("square")  # one lead has no such layout
    assert other.get_by_role("button", name="Paper speed 50 mm/s").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("width", [390, 1024])
def test_a_narrow_page_fits_ten_seconds_and_has_a_short_toolbar(visit, width):
    page = visit("square12@1100", width=width)
    percent = int(page.get_by_role("button", name="back to true size").text_content().removesuffix(" %"))
    assert percent == pytest.approx(100 * (width - 20) / (260 * PX_PER_MM), abs=2)
    gain = page.get_by_role("button", name="Gain 20 mm/mV")
    assert not gain.is_visible()
    page.get_by_role("button", name="More settings").click()
    assert gain.is_visible()
    wide = visit("square12@1100", width=1400)
    assert wide.get_by_text("100 %").is_visible() and wide.get_by_role("button", name="Gain 20 mm/mV").is_visible()
