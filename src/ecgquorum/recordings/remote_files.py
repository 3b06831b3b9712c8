"""Recordings at URLs: list them, and fetch their files to this machine before they are read.

The files of a recording have their names in the cache, so that readers find a header and its signal files side by side.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, final
from urllib.parse import urlsplit

from ecgquorum.errors import RecordingError, StorageError
from ecgquorum.recordings.filetree import FileTree, Folder, ZipArchive
from ecgquorum.recordings.readers import find_in_archive, recording_names
from ecgquorum.recordings.wfdb_files import HEADER, SIGNAL_SUFFIXES, list_files
from ecgquorum.storage import RemoteStore, fetch_to_mirror, join_url, mirror_path

_AT_ONCE = 16
_ARCHIVE = ".zip"


@final
class ListedFolder(FileTree):
    """A folder of a bucket or server as it was listed; a file is fetched when it is opened."""

    def __init__(self, url: str) -> None:
        super().__init__(mirror_path(url), url)
        self._url, self._unlisted = url, dict[str, str]()
        self._stamps: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        for name, found in sorted(RemoteStore(url).list_files().items()):
            try:
                mirror_path(join_url(url, name))
            except StorageError as error:
                self._unlisted[name] = str(error)
                continue
            self._sizes[name], self._stamps[name] = found.size, f"{found.version}:{found.size}"

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    @property
    def unlisted(self) -> Mapping[str, str]:
        return self._unlisted

    def open(self, name: str) -> IO[bytes]:
        _fetch_file(self._url, [self._stamps.get(name, "")], name)
        try:
            return (self.path / name).open("rb")
        except OSError as error:
            raise RecordingError(f"{self.where(name)}: {error.strerror}") from error

    @contextmanager
    def on_disk(self, limits: Mapping[str, int]) -> Iterator[Path]:
        for name in limits:
            _fetch_file(self._url, [self._stamps.get(name, "")], name)
        yield self.path / PurePosixPath(next(iter(limits))).parent

    def fetch_headers(self) -> None:
        """Fetch all WFDB headers, several at a time: they say which files belong together."""
        _run(
            [partial(_fetch_file, self._url, [stamp], name) for name, stamp in self._stamps.items() if _is_header(name)]
        )

    def stamp(self, name: str) -> str:
        """Versions and sizes of the recording's files, as of the listing; 0:0 for one that does not exist."""
        try:
            names = list_files(self, name)
        except RecordingError:
            names = [name]
        return " ".join(self._stamps.get(one, "0:0") for one in names)


def open_url(url: str) -> FileTree | None:
    """The folder or archive at a URL, listed; None if a file is there, or nothing."""
    if url.lower().endswith(_ARCHIVE) and fetch_to_mirror(url):
        return open_fetched(url)
    if PurePosixPath(urlsplit(url).path).suffix and RemoteStore(url).stamp(""):
        return None
    folder = ListedFolder(url)
    if not folder.sizes and not folder.unlisted:
        return None
    folder.fetch_headers()
    return folder


def open_fetched(tree: str) -> FileTree:
    """The folder or archive at a URL with the files that were fetched; uses no network."""
    path = mirror_path(tree)
    return ZipArchive(path, tree) if tree.lower().endswith(_ARCHIVE) and path.is_file() else Folder(path, tree)


def recordings_at_url(url: str) -> Iterator[tuple[str, str]]:
    """(folder or archive, name in it) of every recording at a URL."""
    at = url.lower().find(_ARCHIVE + "/")
    if at >= 0 and fetch_to_mirror(archive := url[: at + len(_ARCHIVE)]):
        yield archive, find_in_archive(open_fetched(archive), url[len(archive) + 1 :])
        return
    tree = open_url(url)
    if tree is not None:
        yield from ((url, name) for name in recording_names(tree))
        return
    folder, _, name = url.rpartition("/")
    stem, _, ending = name.rpartition(".")
    named = [f"{stem}{HEADER}"] if f".{ending}" in SIGNAL_SUFFIXES else []
    for candidate in (*named, name, f"{name}{HEADER}"):
        if RemoteStore(folder).stamp(candidate):
            yield folder, candidate
            return
    raise RecordingError(f"{url}: expected a recording, a folder or an archive, found no such file")


def fetch_recordings(places: Iterable[tuple[str, str, str]]) -> list[Path]:
    """Fetch the files of recordings, each (folder, name, stamp), several at a time; returns what was fetched.

    A file that is there in the version of the stamp is not fetched, and none where the store has no such file.
    """
    fetched: list[list[Path]] = []
    _run([partial(_fetch_recording, *place, fetched) for place in places])
    return [path for some in fetched for path in some]


def remove_fetched(paths: Iterable[Path]) -> None:
    """Remove files that were fetched, except headers, which the next listing needs."""
    for path in paths:
        if not _is_header(path.name):
            path.unlink(missing_ok=True)


def _fetch_recording(tree: str, name: str, stamp: str, fetched: list[list[Path]]) -> None:
    if tree.lower().endswith(_ARCHIVE):
        if not mirror_path(tree).is_file():
            fetch_to_mirror(tree)
        return
    stamps, done, folder = stamp.split(), set[str](), open_fetched(tree)
    waiting = [name]
    while waiting:  # a header names segments, whose headers name signal files
        fetched.append([path for one in waiting if (path := _fetch_file(tree, stamps, one))])
        done.update(waiting)
        try:
            waiting = [one for one in list_files(folder, name) if one not in done]
        except RecordingError:  # which the reader will say
            return


def _fetch_file(tree: str, stamps: Sequence[str], name: str) -> Path | None:
    """Fetch a file unless it is here in one of these versions; returns its path if it was fetched."""
    url = join_url(tree, name)
    path = mirror_path(url)
    if path.is_file() and f"{path.stat().st_mtime_ns}:{path.stat().st_size}" in stamps:
        return None
    if not fetch_to_mirror(url):
        return None
    known = next((one for one in stamps if one.endswith(f":{path.stat().st_size}")), "") if len(stamps) == 1 else ""
    if known:
        version = int(known.partition(":")[0])
        os.utime(path, ns=(version, version))
    return path


def _run(calls: Sequence[Callable[[], object]]) -> None:
    """Call all of them, several at a time; the first error ends it."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        jobs = [pool.submit(call) for call in calls]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _is_header(name: str) -> bool:
    return name.lower().endswith(HEADER)
