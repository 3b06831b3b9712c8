"""A page with the viewer, served as the review desk serves it, and ways to read what it drew."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image

from ...conftest import REPOSITORY

STATIC = REPOSITORY / "src/ecgquorum/service/static"
POLICY = "default-src 'self'; script-src 'self'; style-src 'self'"
PX_PER_MM = 96 / 25.4
GUTTER_MM = 10
TYPES = {".js": "text/javascript", ".css": "text/css"}
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>viewer</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/icon"><link rel="stylesheet" href="/page.css">
<link rel="stylesheet" href="/static/viewer/viewer.css"></head><body>
<div id="viewer" data-narrow="{narrow}"
data-trace="/{name}/trace" data-samples="/{name}/samples" data-maps="/{name}/maps"></div>
<script type="module" src="/static/viewer/mount.js"></script></body></html>"""


class Site:
    """Recordings by name, and which paths were asked for."""

    def __init__(self):
        self.recordings = {}
        self.maps = {}
        self.asked = []
        self.address = ""

    def add(self, name, signal, rate_hz, leads=("II",), n_samples=None):
        """signal: (lead, time) millivolt; n_samples: what the header says, if not the truth."""
        signal = np.atleast_2d(np.asarray(signal, dtype="<f4"))
        header = {"rate_hz": rate_hz, "leads": list(leads), "n_samples": n_samples or signal.shape[1]}
        self.recordings[name] = (json.dumps(header).encode(), signal.tobytes())
        return name

    def answer(self, path):
        """Body and content type at this path, or None."""
        if path in ("/icon", "/page.css"):
            return b"body { margin: 10px; }", "text/css"
        if path.startswith("/static/"):
            file = STATIC / path.removeprefix("/static/")
            return file.read_bytes(), TYPES[file.suffix]
        name, _, part = path[1:].partition("/")
        if part == "":
            return PAGE.format(name=name.split("@")[0], narrow=name.partition("@")[2] or 0).encode(), "text/html"
        if part == "maps":
            return (json.dumps(self.maps[name]).encode(), "application/json") if name in self.maps else None
        header, samples = self.recordings[name]
        return (header, "application/json") if part == "trace" else (samples, "application/octet-stream")


@contextmanager
def serving() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            site.asked.append(self.path)
            found = site.answer(self.path)
            body, kind = found or (b"", "text/plain")
            self.send_response(200 if found else 404)
            self.send_header("content-security-policy", POLICY)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def square_wave(seconds=10, rate_hz=500, high_s=0.4):
    """1 mV for `high_s` of every second, first at 0.5 s; at rest 0."""
    phase = (np.arange(seconds * rate_hz) / rate_hz + 0.5) % 1
    return (phase < high_s).astype(np.float32)


def picture(page):
    """The paper as it is on the screen: (row, column, rgb), device pixels."""
    return np.asarray(Image.open(io.BytesIO(page.locator(".ecg-stage").screenshot())).convert("RGB")).astype(int)


def ink(pixels):
    """Where a trace or a word is, if only in a part of the pixel: (row, column) bool."""
    return pixels.max(axis=2) < 205


def heavy_lines(pixels, axis):
    """The first pixel of each heavy line along an axis: 1 for upright lines."""
    heavy = np.abs(pixels - [0xEE, 0xB6, 0xAC]).max(axis=2) < 6
    found = np.flatnonzero(heavy.mean(axis=1 - axis) > 0.25)
    return found[np.diff(found, prepend=-10) > 1]


def upright_edges(pixels, rows, least):
    """Columns (the middle of neighbours) in which a trace passes through at least so many pixels."""
    found = np.flatnonzero(ink(pixels)[rows].sum(axis=0) >= least)
    return np.array([group.mean() for group in np.split(found, np.flatnonzero(np.diff(found) > 2) + 1)])


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()
    settle(page)


def settle(page):
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
