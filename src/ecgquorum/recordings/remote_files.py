"""Recordings at URLs: list them, and fetch their files to this machine before they are read.

Files have their names there, so that readers find a header and its signal files side by side. Headers stay in the
mirror of the cache, since the next listing needs them, and archives among its objects, by their versions.
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
from typing import IO, TYPE_CHECKING, TypeVar, final
from urllib.parse import urlsplit

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree, Folder, ZipArchive
from ecgquorum.recordings.readers import find_in_archive, recording_names
from ecgquorum.recordings.wfdb_files import HEADER, SIGNAL_SUFFIXES, is_multi_segment, list_files
from ecgquorum.storage import (
    FileMissingError,
    FileRefusedError,
    RemoteStore,
    cache_folder,
    download,
    fetch,
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

T = TypeVar("T")


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
            except FileRefusedError as error:
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
        try:
            _fetch_file(self._url, self._stamps.get(name, ""), name)
            return (self.path / name).open("rb")
        except OSError as error:
            raise RecordingError(f"{self.where(name)}: {error.strerror}") from error
        except FileRefusedError as error:
            raise RecordingError(str(error)) from None

    @contextmanager
    def on_disk(self, limits: Mapping[str, int]) -> Iterator[Path]:
        for name in limits:
            _fetch_file(self._url, self._stamps.get(name, ""), name)
        yield self.path / PurePosixPath(next(iter(limits))).parent

    def fetch_headers(self) -> None:
        """Fetch all WFDB headers, several at a time: they say which files belong together."""
        _run([partial(self._fetch_header, name) for name in self._stamps if _is_header(name)])

    def _fetch_header(self, name: str) -> None:
        with suppress(FileRefusedError):  # which `open` will say
            _fetch_file(self._url, self._stamps[name], name)

    def stamp(self, name: str) -> str:
        """Versions and sizes of the recording's files, as of the listing; 0:0 for one that does not exist."""
        try:
            names = list_files(self, name)
        except RecordingError:
            names = [name]
        return " ".join(self._stamps.get(one, _MISSING) for one in names)


def open_url(url: str) -> FileTree | None:
    """The folder or archive at a URL, listed; None if a file is there, or nothing."""
    if path := _fetch_archive(url):
        return ZipArchive(path, url)
    if PurePosixPath(urlsplit(url).path).suffix and RemoteStore(url).stamp(""):
        return None
    folder = ListedFolder(url)
    if not folder.sizes and not folder.unlisted:
        return None
    folder.fetch_headers()
    return folder


def open_fetched(tree: str, fetched: str = "") -> FileTree:
    """The folder or archive at a URL with the files that were fetched, in the place that `fetch_recordings` names."""
    if fetched:
        path = Path(fetched)
        return ZipArchive(path, tree) if path.is_file() else Folder(path, tree)
    archive = _fetch_archive(tree)
    return ZipArchive(archive, tree) if archive else Folder(mirror_path(tree), tree)


def recordings_at_url(url: str) -> Iterator[tuple[str, str]]:
    """(folder or archive, name in it) of every recording at a URL."""
    at = url.lower().find(_ARCHIVE + "/")
    archive = url[: at + len(_ARCHIVE)]
    if at >= 0 and (path := _fetch_archive(archive)):
        yield archive, find_in_archive(ZipArchive(path, archive), url[len(archive) + 1 :])
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

    They are in a folder of this block alone, since another process may read the same recordings. A recording with a
    file that cannot be had is returned with the reason; a store that does not answer ends the block.
    """
    paths = list(paths)
    if not any(is_url(path.tree) for path in paths):
        yield paths
        return
    folder = cache_folder() / "fetched"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        archives = {tree: _fetch_archive(tree) for tree in {path.tree for path in paths if is_url(path.tree)}}
        places = [archives.get(path.tree) or Path(scratch) / str(number) for number, path in enumerate(paths)]
        found = [
            replace(path, fetched=str(place)) if is_url(path.tree) else path
            for path, place in zip(paths, places, strict=True)
        ]
        yield _run([partial(_fetch_recording, path) for path in found])


def segment_files(path: "RecordingPath") -> list[str]:
    """Files of the segments of a multi-segment record in a folder at a URL that were there when it was listed."""
    tree = Folder(mirror_path(path.tree), path.tree)
    try:
        names = list_files(tree, path.name) if _is_header(path.name) and is_multi_segment(tree.read(path.name)) else []
    except RecordingError:  # the header could not be fetched, which its own failure says
        return []
    there = zip(names[1:], path.stamp.split()[1:], strict=False)
    return [name for name, stamp in there if stamp != _MISSING]


def _fetch_archive(tree: str) -> Path | None:
    """The archive at a URL on this machine, in the version that is there now; None if there is no archive."""
    if not tree.lower().endswith(_ARCHIVE):
        return None
    try:
        return fetch(tree)
    except FileMissingError:
        return None


def _fetch_recording(path: "RecordingPath") -> "RecordingPath":
    """Fetch the files of a recording in a folder, those that exist; returns it with the reason if one is refused."""
    if not is_url(path.tree) or Path(path.fetched).is_file():
        return path
    folder, done = Folder(Path(path.fetched), path.tree), set[str]()
    waiting = [path.name]
    while waiting:  # a header names segments, whose headers name signal files
        try:
            for name in waiting:
                _copy_file(path, name)
            done.update(waiting)
            waiting = [one for one in list_files(folder, path.name) if one not in done]
        except FileRefusedError as error:
            return replace(path, refused=str(error))
        except RecordingError:  # which the reader will say
            break
    return path


def _copy_file(path: "RecordingPath", name: str) -> None:
    """Fetch a file to the folder of the recording, or copy a header that the listing has fetched."""
    if PurePosixPath(name).name == "..":  # as a header may say, which the reader will refuse
        return
    url = join_url(path.tree, name)
    kept, target = mirror_path(url), Path(path.fetched) / name  # which refuses empty parts, hence absolute names
    if not target.is_relative_to(path.fetched):
        raise FileRefusedError(f"{url}: a file of this name cannot be stored on this machine")
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


def _run(calls: Sequence[Callable[[], T]]) -> list[T]:
    """What all of them return, several at a time; the first error ends it."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        jobs = [pool.submit(call) for call in calls]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _is_header(name: str) -> bool:
    return name.lower().endswith(HEADER)
