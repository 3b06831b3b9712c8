"""Triage from a web server: links that lead nowhere or elsewhere, and a server that does not answer."""

import functools
import http.server
import os
import threading

import pytest

from ecgquorum.errors import StorageError
from ecgquorum.recordings.discovery import RecordingPath
from ecgquorum.recordings.remote_files import ListedFolder, fetch_recordings
from ecgquorum.storage import RemoteStore
from ecgquorum.triage import triage_files
from ecgquorum.triage.policies import Threshold

pytestmark = pytest.mark.long

POLICY = Threshold(0.5)


@pytest.fixture
def folder(tmp_path, tiny_cohort, write_record):
    """WFDB files, one header without its signal, a broken file and one that is no recording."""
    place = tmp_path / "in"
    place.mkdir()
    for i in range(12):
        write_record(f"w{i:02d}", tiny_cohort.signal(i + 20), folder=place)
    (place / "w03.dat").unlink()
    (place / "broken.npz").write_bytes(b"this is no recording")
    (place / "notes.pdf").write_bytes(b"%PDF")
    return place


@pytest.fixture
def web(s3, folder):
    """A web server that lists `folder` as a page of links; fail: path -> statuses of the next answers."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def send_head(self):
            if waiting := server.fail.get(self.path):
                self.send_error(waiting.pop())
                return None
            return super().send_head()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    server.fail, server.url = {}, f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def decide(ensemble, place, out):
    with triage_files(ensemble, POLICY, [place], out) as journal:
        return {entry.result.source.removeprefix(f"{place}/"): entry.result.decision for entry in journal.entries()}


def test_a_server_that_is_busy_for_a_while_changes_nothing(web, tiny_ensemble, tmp_path):
    for path in ("/", "/w00.hea", "/w01.dat", "/broken.npz"):
        web.fail[path] = [503, 500, 502]
    found = decide(tiny_ensemble, web.url, tmp_path / "out")
    decisions = list(found.values())
    assert len(decisions) == 14 and decisions.count("unreadable") == 2 and decisions.count("skipped") == 1
    assert not any(web.fail.values())


def test_a_web_server_that_stays_busy_ends_the_command(web, folder, tiny_ensemble, tmp_path):
    names = sorted(path.name for path in folder.iterdir())
    (folder / "index.html").write_text("".join(f'<a href="{name}">x</a>' for name in names))
    web.fail["/w05.dat"] = [503] * 10_000
    with pytest.raises(StorageError, match=r"/w05.dat: no answer after 6 attempts \(HTTP status 503\); run the same"):
        decide(tiny_ensemble, web.url, tmp_path / "out")
    store = RemoteStore(web.url)
    web.fail.clear()
    listed = ListedFolder(web.url)
    web.fail["/w05.dat"] = [503] * 10_000
    path = RecordingPath(web.url, "w05.hea", listed.stamp("w05.hea"))
    with pytest.raises(StorageError, match="w05.dat: no answer after"), fetch_recordings([path]):
        pass
    with pytest.raises(StorageError, match="w05.dat: no answer after"):
        store.stamp("w05.dat")


def test_links_that_lead_nowhere_or_elsewhere(web, folder, tiny_ensemble, tmp_path):
    outside = tmp_path / "outside.csv"
    links = ("w00.hea", "w00.dat", "gone.npz", "gone/", f"/{outside}", "x/../../y.npz", "../../", "?C=N;O=D", "w01.hea")
    (folder / "index.html").write_text("".join(f'<a href="{link}">x</a>' for link in links))
    web.fail["/w01.hea"] = [403] * 1000
    found = decide(tiny_ensemble, web.url, tmp_path / "out")
    good = found.pop("w00.hea")
    assert good not in ("unreadable", "skipped")
    assert found.pop("gone.npz") == found.pop("w01.hea") == "unreadable"
    assert set(found.values()) == {"skipped"} and "gone" in found and "x/../../y.npz" in found
    assert not outside.exists()


def test_a_web_server_without_etags_shows_changes(web, folder):
    store, file = RemoteStore(web.url), folder / "broken.npz"
    before = store.stamp("broken.npz")
    os.utime(file, (1, 1))
    assert before and store.stamp("broken.npz") != before
