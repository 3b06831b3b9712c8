"""Recordings at URLs: list them, and fetch their files to this machine before they are read.

Files have their names there, so that readers find a header and its signal files side by side. Headers and archives stay
in the mirror of the cache, since the next listing needs them.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, final
from urllib.parse import urlsplit

from ecgquorum.errors import RecordingError, StorageError
from ecgquorum.recordings.filetree import FileTree, Folder, ZipArchive
from ecgquorum.recordings.readers import find_in_archive, recording_names
from ecgquorum.recordings.wfdb_files import HEADER, SIGNAL_SUFFIXES, is_multi_segment, list_files
from ecgquorum.storage import (
    FileMissingError,
    RemoteStore,
    cache_folder,
    download,
    fetch_to_mirror,
    is_url,
    join_url,
    mirror_path,
)

if TYPE_CHECKING:
    from ecgquorum.recordings.discovery import RecordingPath

_AT_ONCE = 16
_ARCHIVE = ".zip"
_MISSING = "0:0"


@final
class ListedFolder(FileTree):
    """A folder of a bucket or server as it was listed; a file is fetched when it is opened."""

    def __init__(self, url: str) -> None:
        super().__init__(mirror_path(url), url)
        self._url, self._unlisted = url, dict[str, str]()
        self._stamps: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        files = RemoteStore(url).list_files()
        folders = {str(folder) for name in files for folder in PurePosixPath(name).parents}
        for name, found in sorted(files.items()):
            try:
                mirror_path(join_url(url, name))
            except StorageError as error:
                self._unlisted[name] = str(error)
                continue
            if name in folders:
                self._unlisted[name] = "a file and a folder of the same name"
                continue
            self._sizes[name], self._stamps[name] = found.size, f"{found.version}:{found.size}"

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    @property
    def unlisted(self) -> Mapping[str, str]:
        return self._unlisted

    def open(self, name: str) -> IO[bytes]:
        _fetch_file(self._url, self._stamps.get(name, ""), name)
        try:
            return (self.path / name).open("rb")
        except OSError as error:
            raise RecordingError(f"{self.where(name)}: {error.strerror}") from error

    @contextmanager
    def on_disk(self, limits: Mapping[str, int]) -> Iterator[Path]:
        for name in limits:
            _fetch_file(self._url, self._stamps.get(name, ""), name)
        yield self.path / PurePosixPath(next(iter(limits))).parent

    def fetch_headers(self) -> None:
        """Fetch all WFDB headers, several at a time: they say which files belong together."""
        _run([partial(_fetch_file, self._url, stamp, name) for name, stamp in self._stamps.items() if _is_header(name)])

    def stamp(self, name: str) -> str:
        """Versions and sizes of the recording's files, as of the listing; 0:0 for one that does not exist."""
        try:
            names = list_files(self, name)
        except RecordingError:
            names = [name]
        return " ".join(self._stamps.get(one, _MISSING) for one in names)


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


@contextmanager
def fetch_recordings(paths: "Iterable[RecordingPath]") -> "Iterator[list[RecordingPath]]":
    """The same paths; the files of those at URLs are on this machine while the block runs.

    They are in a folder of this block alone, since another process may read the same recordings.
    """
    paths = list(paths)
    if not any(is_url(path.tree) for path in paths):
        yield paths
        return
    folder = cache_folder() / "fetched"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        found = [_place(path, Path(scratch) / str(number)) for number, path in enumerate(paths)]
        _run([partial(_fetch_recording, path) for path in found if path.fetched])
        _run(
            [
                partial(_fetch_archive, tree)
                for tree in {path.tree for path in found if is_url(path.tree) and not path.fetched}
            ]
        )
        yield found


def segment_files(path: "RecordingPath") -> list[str]:
    """Files of the segments of a multi-segment record at a URL that were there when it was listed."""
    tree = open_fetched(path.tree)
    names = list_files(tree, path.name) if _is_header(path.name) and is_multi_segment(tree.read(path.name)) else []
    there = zip(names[1:], path.stamp.split()[1:], strict=False)
    return [name for name, stamp in there if stamp != _MISSING]


def _place(path: "RecordingPath", folder: Path) -> "RecordingPath":
    """The path with the folder for its files; one on this machine, or in an archive, as it is."""
    is_file = is_url(path.tree) and not path.tree.lower().endswith(_ARCHIVE)
    return replace(path, fetched=str(folder)) if is_file else path


def _fetch_archive(tree: str) -> None:
    if not mirror_path(tree).is_file():
        fetch_to_mirror(tree)


def _fetch_recording(path: "RecordingPath") -> None:
    """Fetch the files of a recording, those that exist."""
    folder, done = Folder(Path(path.fetched), path.tree), set[str]()
    waiting = [path.name]
    while waiting:  # a header names segments, whose headers name signal files
        for name in waiting:
            _copy_file(path, name)
        done.update(waiting)
        try:
            waiting = [one for one in list_files(folder, path.name) if one not in done]
        except RecordingError:  # which the reader will say
            return


def _copy_file(path: "RecordingPath", name: str) -> None:
    """Fetch a file to the folder of the recording, or copy a header that the listing has fetched."""
    if PurePosixPath(name).name == "..":  # as a header may say, which the reader will refuse
        return
    url = join_url(path.tree, name)
    kept, target = mirror_path(url), Path(path.fetched) / name
    if _is_header(name) and _stamp_of(kept) in path.stamp.split():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kept, target)
        return
    with suppress(FileMissingError):
        download(url, target)


def _fetch_file(tree: str, stamp: str, name: str) -> None:
    """Fetch a file to the mirror, unless it is there in this version."""
    url = join_url(tree, name)
    path = mirror_path(url)
    if _stamp_of(path) != stamp and fetch_to_mirror(url):
        version = int(stamp.partition(":")[0] or 0)
        os.utime(path, ns=(version, version))


def _stamp_of(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return _MISSING
    return f"{found.st_mtime_ns}:{found.st_size}"


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
