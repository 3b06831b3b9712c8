"""Downloads, from a server on this machine that behaves like PhysioNet's and like a bad connection."""

import hashlib
import http.server
import threading
from types import SimpleNamespace

import pytest

from ecgquorum import fetch
from ecgquorum.errors import FetchError

ARCHIVE = bytes(range(256)) * 2000
FILES = {"training2017.zip": ARCHIVE, "REFERENCE-v3.csv": b"A00001,N\n", "sources/other.zip": b"not wanted"}


class Server(http.server.BaseHTTPRequestHandler):
    """Serves `files`; answers ranges; breaks off the first answers after `break_after` bytes."""

    files: dict[str, bytes]
    asked: list[tuple[str, str | None]]
    break_after: list[int]

    def do_GET(self):
        name, wanted = self.path.lstrip("/").removeprefix("data/"), self.headers.get("Range")
        self.asked.append((name, wanted))
        content = self.files.get(name)
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        rest = content[start:]
        if name.endswith(".zip") and self.break_after:
            self.wfile.write(rest[: self.break_after.pop()])
            self.wfile.flush()
            self.connection.close()
        else:
            self.wfile.write(rest)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    sums = "".join(f"{hashlib.sha256(content).hexdigest()} {name}\n" for name, content in FILES.items())
    handler = type(
        "Handler", (Server,), {"files": {**FILES, "SHA256SUMS.txt": sums.encode()}, "asked": [], "break_after": []}
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        handler.url = f"http://127.0.0.1:{running.server_port}/data"
        yield handler
        running.shutdown()


def test_files_are_verified_and_fetched_once(server, tmp_path):
    steps = []
    progress = SimpleNamespace(update=lambda _, done, total: steps.append((done, total)))
    fetch("physionet2017", tmp_path, url=server.url, progress=progress)
    assert (tmp_path / "training2017.zip").read_bytes() == ARCHIVE
    assert {p.name for p in tmp_path.iterdir()} == {"training2017.zip", "REFERENCE-v3.csv", "TERMS.txt"}
    assert steps == [(1, 2), (2, 2)]
    server.asked.clear()
    fetch("physionet2017", tmp_path, url=server.url)
    assert server.asked == [("SHA256SUMS.txt", None)]


def test_an_interrupted_download_is_resumed(server, tmp_path):
    server.break_after.extend([10_000, 10_000, 10_000, 300_000])
    with pytest.raises(FetchError, match="run the same command to resume"):
        fetch("physionet2017", tmp_path, url=server.url)
    kept = (tmp_path / "training2017.zip.part").stat().st_size
    assert 300_000 <= kept < len(ARCHIVE)
    assert not (tmp_path / "training2017.zip").exists()
    fetch("physionet2017", tmp_path, url=server.url)
    assert ("training2017.zip", f"bytes={kept}-") in server.asked
    assert (tmp_path / "training2017.zip").read_bytes() == ARCHIVE


def test_a_stale_partial_download_is_discarded(server, tmp_path):
    (tmp_path / "training2017.zip.part").write_bytes(b"from another version")
    fetch("physionet2017", tmp_path, url=server.url)
    assert (tmp_path / "training2017.zip").read_bytes() == ARCHIVE


def test_files_with_wrong_checksums_are_discarded(server, tmp_path):
    server.files = {**server.files, "training2017.zip": b"tampered with"}
    with pytest.raises(FetchError, match="training2017.zip: expected SHA-256"):
        fetch("physionet2017", tmp_path, url=server.url)
    assert not (tmp_path / "training2017.zip").exists()
    assert not (tmp_path / "training2017.zip.part").exists()


def test_cpsc_files_keep_their_folders(server, tmp_path):
    files = {
        "training/cpsc_2018/g1/A0001.hea": b"a",
        "training/cpsc_2018/g1/A0001.mat": b"b",
        "training/ptb/s1.hea": b"c",
    }
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    sums += f"{'0' * 64} training/cpsc_2018/../../../evil.hea\n"
    server.files = {**files, "SHA256SUMS.txt": sums.encode()}
    fetch("cpsc2018", tmp_path / "out", url=server.url)
    found = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {"out/training/cpsc_2018/g1/A0001.hea", "out/training/cpsc_2018/g1/A0001.mat", "out/TERMS.txt"}


def test_without_a_network_the_message_says_what_to_do(tmp_path):
    with pytest.raises(FetchError, match="needs a network.*--url"):
        fetch("physionet2017", tmp_path, url="http://127.0.0.1:9/")
    with pytest.raises(FetchError, match="found 'mitdb'"):
        fetch("mitdb", tmp_path)
    with pytest.raises(FetchError, match="http"):
        fetch("physionet2017", tmp_path, url="file:///etc")


def test_a_server_without_the_data_set_is_refused(server, tmp_path):
    server.files = {"SHA256SUMS.txt": b"0 README\n"}
    with pytest.raises(FetchError, match="found none"):
        fetch("physionet2017", tmp_path, url=server.url)
    server.files = {}
    with pytest.raises(FetchError, match="404"):
        fetch("physionet2017", tmp_path, url=server.url)
