"""What the viewer draws, and how fast; its modules without a browser."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ecgquorum.recordings.leads import STANDARD_LEADS
from ecgquorum.simulation.rhythms import simulate

from .site import GUTTER_MM, PX_PER_MM, STATIC, ink, picture, press, settle, square_wave


@pytest.mark.parametrize("rate_hz", [250, 1000, 4000])
def test_a_spike_of_one_sample_is_drawn(visit, site, rate_hz):
    flat = np.zeros(60 * rate_hz)
    flat[3 * rate_hz + 7] = 1
    page = visit(site.add(f"spike{rate_hz}", flat, rate_hz))
    press(page, "Paper speed 12.5 mm/s")
    for _ in range(8):  # down to the smallest: up to 340 samples a pixel
        press(page, "Smaller")
    scale = 0.25 * PX_PER_MM
    pixels = picture(page)
    column = round((GUTTER_MM + 3 * 12.5) * scale)
    darkest = pixels[: round(30 * scale), column - 2 : column + 3].max(axis=2).min(axis=1)
    assert (darkest < 200).sum() >= 0.9 * 10 * scale


def test_missing_samples_leave_a_gap(visit, site):
    flat = np.zeros(10 * 500)
    flat[1000:1500] = np.nan
    flat[1250] = 0.0  # one sample alone
    page = visit(site.add("gap", flat, 500))
    row = ink(picture(page))[: round(30 * PX_PER_MM)]
    x = lambda seconds: round((GUTTER_MM + 25 * seconds) * PX_PER_MM)  # noqa: E731
    assert row[:, x(1) : x(2) - 1].any(axis=0).all()
    assert not row[:, x(2) + 2 : x(2.5) - 2].any() and not row[:, x(2.5) + 3 : x(3) - 2].any()
    assert picture(page)[: round(30 * PX_PER_MM), x(2.5) - 1 : x(2.5) + 3].max(axis=2).min() < 160
    assert row[:, x(3) + 1 : x(4)].any(axis=0).all()


def test_layouts_follow_the_leads(visit, site):
    def offered(page):
        return page.get_by_role("group", name="Layout").get_by_role("button").all_text_contents()

    assert offered(visit("square12")) == ["3×4+1", "6×2", "12×1"]
    assert offered(visit("square")) == []
    page = visit(site.add("three", np.zeros((3, 5000)), 500, ("V1", "II", "ECG")))
    assert page.locator(".ecg-ink").get_attribute("aria-label").startswith("ECG: V1, II, ECG; 25 mm/s   10 mm/mV")


def test_maps_are_requested_after_reveal(visit, site):
    site.add("mapped", np.zeros(5000), 500)
    page = visit("mapped")
    plain = picture(page)
    assert "/mapped/maps" not in site.asked
    half = {"II": [0.0] * 50 + [1.0] * 50}
    site.maps["mapped"] = {"start_s": 0.0, "stop_s": 10.0, "members": [{"name": "a", "leads": half}]}
    page.evaluate("() => document.getElementById('viewer').dispatchEvent(new Event('ecg:reveal'))")
    page.get_by_role("button", name="Attribution: a", exact=True).wait_for()
    settle(page)
    shown = picture(page)
    y, x = round(10.5 * PX_PER_MM), lambda seconds: round((GUTTER_MM + 25 * seconds) * PX_PER_MM)
    assert (shown[y, x(1) : x(4)] == plain[y, x(1) : x(4)]).all()
    assert (shown[y, x(6) : x(7.5), 0] < plain[y, x(6) : x(7.5), 0] - 40).all()
    press(page, "Attribution: none")
    assert (picture(page)[: y + 20] == plain[: y + 20]).all()


def test_a_recording_that_cannot_be_shown_gives_a_message(visit, site):
    page = visit(site.add("torn", np.zeros(100), 500, n_samples=101))
    assert page.get_by_role("alert").text_content() == "expected 404 bytes of samples, found 400"
    page = visit(site.add("endless", np.zeros(100), 300, n_samples=10**8))
    assert "the limit is 67108864, 62.1 h of such a recording" in page.get_by_role("alert").text_content()
    assert "/endless/samples" not in site.asked


def test_moving_twelve_leads_is_smooth_and_leaves_the_grid_alone(visit, site, record_property):
    heart = simulate("Normal", seed=1, seconds=60, rate_hz=500)
    site.add("moving", heart.recording.signal, 500, STANDARD_LEADS)
    page = visit("moving", width=1400, height=900)
    press(page, "Layout 12×1")
    frames, grid_calls = page.evaluate(
        """async () => {
          const context = document.querySelector(".ecg-grid").getContext("2d");
          const fill = context.fillRect;
          let calls = 0;
          context.fillRect = (...where) => { calls++; fill.apply(context, where); };
          const stage = document.querySelector(".ecg-stage");
          const times = [];
          for (let frame = 0; frame < 90; frame++) {
            stage.dispatchEvent(new WheelEvent("wheel", { deltaX: 6, bubbles: true, cancelable: true }));
            times.push(await new Promise(requestAnimationFrame));
          }
          return [times, calls];
        }"""
    )
    lengths = np.diff(frames)[10:]
    median, slow = np.percentile(lengths, [50, 95])
    record_property("frame_ms", f"median {median:.1f}, 95 % {slow:.1f}")
    print(f"frames: median {median:.1f} ms, 95 % {slow:.1f} ms")
    assert grid_calls == 0
    assert median < 150  # a software renderer on a busy machine; a frame is 16.7 ms where nothing else runs


@pytest.mark.slow
def test_a_day_of_one_lead_does_not_freeze_the_page(visit, site):
    day = np.tile(square_wave(60, 300), 24 * 60)
    page = visit(site.add("day", day, 300))
    assert page.get_by_text("100 %").is_visible()
    page.locator(".ecg-stage").focus()
    page.keyboard.press("End")
    settle(page)
    longest = page.evaluate(
        """async () => {
          const stage = document.querySelector(".ecg-stage");
          let longest = 0, before = performance.now();
          for (let frame = 0; frame < 60; frame++) {
            stage.dispatchEvent(new WheelEvent("wheel", { deltaX: -500, bubbles: true, cancelable: true }));
            const now = await new Promise(requestAnimationFrame);
            longest = Math.max(longest, now - before);
            before = now;
          }
          return longest;
        }"""
    )
    assert longest < 500


def test_the_modules_compute_what_they_say(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    shutil.copytree(STATIC / "viewer", tmp_path / "viewer")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(Path(__file__).with_name("arithmetic.test.mjs"), tmp_path)
    run = subprocess.run([node, "--test", str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout
