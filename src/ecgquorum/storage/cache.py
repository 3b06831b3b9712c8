"""Copies on this machine of files in stores.

CACHE/objects/KEY/NAME     a file by the hash of its URL and version: an earlier version is never taken for a later one
CACHE/mirror/SCHEME/HOST/  files by their names: headers of recordings
CACHE/fetched/             recordings that are being read
CACHE/outputs/             folders that a command writes before it puts their files

CACHE is the folder that ECGQUORUM_CACHE names, or `ecgquorum` in the user's cache folder. It may be deleted when no
command runs.
"""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from ecgquorum.storage.backends import open_backend
from ecgquorum.storage.retries import FileMissingError, FileRefusedError, call_store
from ecgquorum.storage.urls import parse_location

_LONGEST = 240  # of the 255 bytes that file systems allow


def cache_folder() -> Path:
    """The folder of copies on this machine."""
    given = os.environ.get("ECGQUORUM_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given).absolute() if given else Path(base) / "ecgquorum"


def fetch(location: str | Path) -> Path:
    """Return the path of a file on this machine; one at a URL is fetched unless this version is there."""
    location = parse_location(location)
    if isinstance(location, Path):
        return location
    url = location
    backend = open_backend(root_of(url))
    found = call_store(url, lambda: backend.find(url))
    if found is None:
        raise FileMissingError(f"{url}: no such file")
    key = hashlib.sha256(f"{url}\0{found.size}\0{found.version}".encode()).hexdigest()
    path = cache_folder() / "objects" / key / url.rpartition("/")[2]
    if not path.is_file() or found.size not in (-1, path.stat().st_size):  # one that was cut short later
        download(url, path)
    return path


def download(url: str, path: Path) -> None:
    """Fetch a file to `path`, atomically."""

    def attempt() -> None:
        with _scratch(path) as file:
            open_backend(root_of(url)).read_into(url, file)

    call_store(url, attempt)


def mirror_path(url: str) -> Path:
    """Where `fetch_to_mirror` puts a file, or the files of a folder."""
    parts = urlsplit(url)
    inner = url.partition("://")[2].partition("/")[2]
    names = inner.rstrip("/").split("/") if inner.strip("/") else []
    if any(name in ("", ".", "..") or "\0" in name or len(name.encode()) > _LONGEST for name in names):
        raise FileRefusedError(f"{url}: a file of this name cannot be stored on this machine")
    return cache_folder().joinpath("mirror", parts.scheme, parts.netloc or "-", *names)


def fetch_to_mirror(url: str) -> bool:
    """Fetch a file to `mirror_path`, also if one is there; False if the store has no such file."""
    path = mirror_path(url)
    try:
        download(url, path)
    except FileMissingError:
        path.unlink(missing_ok=True)
        return False
    return True


def root_of(url: str) -> str:
    """Scheme and host, or bucket."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@contextmanager
def _scratch(path: Path) -> Iterator[IO[bytes]]:
    """A file that becomes `path`; without a flush to disk, since the store has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with scratch.open("wb") as file:
            yield file
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
