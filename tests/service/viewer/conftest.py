"""Debian's chromium on a page with the viewer."""

import numpy as np
import pytest

from ecgquorum.recordings.leads import STANDARD_LEADS

from .site import serving, square_wave


@pytest.fixture(scope="package")
def site():
    with serving() as site:
        site.add("square", square_wave(), 500)
        site.add("square12", np.stack([square_wave()] * 12), 500, STANDARD_LEADS)
        yield site


@pytest.fixture(scope="module")
def contexts(chromium):
    """One for each kind of screen: opening them takes longer than most tests."""
    opened = {}

    def context(ratio, touch):
        if (ratio, touch) not in opened:
            opened[ratio, touch] = chromium.new_context(device_scale_factor=ratio, has_touch=touch)
        return opened[ratio, touch]

    return context


@pytest.fixture
def visit(contexts, site):
    """Open a recording's page; no console error and no violation of the policy may occur on it."""
    pages, complaints = [], []

    def open_page(name, *, width=800, height=500, ratio=1, touch=False):
        page = contexts(ratio, touch).new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{site.address}/{name}")
        page.locator(".ecg-stage, [role=alert]").wait_for()
        return page

    yield open_page
    for page in pages:
        page.evaluate("localStorage.clear()")
        page.close()
    assert complaints == []
