"""Mouse, touch and keys, and which keys are left to the page."""

import numpy as np
import pytest
from playwright.sync_api import expect

from ecgquorum.recordings.leads import STANDARD_LEADS

from .site import PX_PER_MM, picture, press, settle, square_wave


def test_the_keys_of_the_page_reach_the_page(visit):
    page = visit("square12")
    page.evaluate(
        """() => { window.keys = [];
        addEventListener("keydown", (event) => window.keys.push([event.key, event.defaultPrevented])); }"""
    )
    for focus in (".ecg-stage", ".ecg-toolbar button"):
        page.locator(focus).first.focus()
        for key in ("j", "k", "0", "1", "9", "Enter", "Escape"):
            page.keyboard.press(key)
            assert page.evaluate("window.keys.pop()") == [key, False]


def test_a_click_on_a_button_leaves_the_next_key_to_the_page(visit):
    page = visit("square12")
    press(page, "Larger")
    page.keyboard.press("Enter")
    settle(page)
    assert page.get_by_text("125 %").is_visible()


def test_touch_pans_and_zooms(visit, site):
    site.add("strip12", np.stack([square_wave(30)] * 12), 500, STANDARD_LEADS)
    page = visit("strip12", width=390, height=844, ratio=2, touch=True)
    box = page.locator(".ecg-stage").bounding_box()
    session = page.context.new_cdp_session(page)

    def touch(kind, *xs):
        points = [{"x": box["x"] + x, "y": box["y"] + 60, "id": index} for index, x in enumerate(xs)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    before = picture(page)
    touch("touchStart", 300)
    for x in range(290, 199, -10):
        touch("touchMove", x)
    touch("touchEnd")
    settle(page)
    assert (picture(page) != before).any()
    caliper = page.get_by_role("button", name="Caliper:")
    caliper.click()  # no tap: Chromium drops one that follows a pan too soon
    expect(caliper).to_have_attribute("aria-pressed", "true")
    touch("touchStart", 100)
    for x in (120, 150, 180, 100 + 25 * PX_PER_MM):
        touch("touchMove", x)
    touch("touchEnd")
    settle(page)
    label = page.locator(".ecg-caliper-label")
    expect(label).not_to_be_empty()
    ms = label.text_content().split()[0]
    assert int(ms) == pytest.approx(1000, abs=1000 / (25 * PX_PER_MM))
    page.keyboard.press("Escape")
    touch("touchStart", 150, 200)
    for spread in range(0, 51, 5):
        touch("touchMove", 150 - spread, 200 + spread)
    touch("touchEnd")
    settle(page)
    percent = int(page.get_by_role("button", name="back to true size").text_content().removesuffix(" %"))
    assert percent == pytest.approx(300, abs=15)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
