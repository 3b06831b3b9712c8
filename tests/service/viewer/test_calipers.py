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
