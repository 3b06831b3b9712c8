"""Find recordings in files, folders, archives and buckets, and notice files that are incomplete or have changed.

Every file of a folder or archive is a recording, a part of one, skipped for a stated reason, or ignored on request.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path, PurePosixPath

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree, Folder, open_tree
from ecgquorum.recordings.readers import FORMATS, find_in_archive, is_label_table, recording_names
from ecgquorum.recordings.remote_files import ListedFolder, open_fetched, open_url, recordings_at_url, segment_files
from ecgquorum.recordings.samples import resolve_sample
from ecgquorum.recordings.wfdb_files import list_files, list_segment_files, read_stamps
from ecgquorum.storage import RemoteStore, is_url, join_url, parse_location

_SETTLED_S, _INCOMPLETE_S = 2.0, 60.0
_NO_SUCH_PATH = (RecordingError, OSError, ValueError, RuntimeError)  # a null byte, a link that leads to itself


@dataclass(frozen=True)
class RecordingPath:
    """Location of a recording: a folder, an archive or the URL of one, and the file name in it.

    stamp:   modification times and sizes of its files, when it was found
    fetched: folder of this machine with its files, or its archive, for one at a URL
    refused: why a file of it could not be fetched
    """

    tree: str
    name: str
    stamp: str = ""
    fetched: str = ""
    refused: str = ""

    def __str__(self) -> str:
        return printable(join_url(self.tree, self.name) if is_url(self.tree) else str(Path(self.tree) / self.name))


@dataclass(frozen=True)
class ReadFailure:
    """A recording that could not be read or prepared, and why.

    source: its path · sha256: of its files, if they could be read at all
    """

    source: str
    reason: str
    sha256: str = ""


@dataclass(frozen=True)
class SkippedFile:
    """A file in a folder or archive that is no recording and no part of one, and why."""

    source: str
    reason: str


@dataclass(frozen=True, eq=False)
class Discovery:
    """What is at some paths.

    recordings: each once
    failures:   given paths that do not exist or cannot be read
    skipped:    files that are no recordings, and folders that cannot be listed
    n_ignored:  files that the patterns to ignore left out
    """

    recordings: list[RecordingPath]
    failures: list[ReadFailure]
    skipped: list[SkippedFile]
    n_ignored: int = 0


def _keep_all(_: Path) -> bool:
    return False


def printable(text: str) -> str:
    """Escape the parts of a file name that are not valid Unicode, so that it can be written to any file."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def discover_recordings(paths: Iterable[str | Path]) -> Iterator[RecordingPath | ReadFailure]:
    """Yield every recording in the given files, folders, archives and URLs once, in order.

    A path that does not exist, cannot be read or holds no recordings gives a `ReadFailure`.
    """
    seen: set[tuple[str, str]] = set()
    for path in paths:
        try:
            found = list(_recordings_at(_resolve(path)))
            if not found:
                raise RecordingError(f"{path}: expected recordings ({FORMATS}), found none")
        except _NO_SUCH_PATH as error:
            yield ReadFailure(printable(str(path)), printable(str(error)))
            continue
        for tree, name in found:
            if (tree, name) not in seen:
                seen.add((tree, name))
                yield RecordingPath(tree, name, _stamp(tree, name))


def list_everything(
    paths: Iterable[str | Path], ignore: Iterable[str] = (), exclude: Callable[[Path], bool] = _keep_all
) -> Discovery:
    """Find recordings as `discover_recordings` does, and account for every other file.

    ignore:  patterns of files to leave out, such as *.txt, of the name or of the path within the folder or archive
    exclude: files that are neither recordings nor worth mentioning
    """
    patterns = tuple(ignore)
    places: dict[tuple[str, str], None] = {}
    failures: list[ReadFailure] = []
    skipped: dict[str, str] = {}
    ignored: set[Path] = set()
    listed: dict[str, FileTree] = {}
    for path in paths:
        try:
            at = _resolve(path)
            is_whole = isinstance(at, Path) and (at.is_dir() or enclosing_archive(at) == at)
            tree = open_url(at) if isinstance(at, str) else open_tree(at) if is_whole else None
            if tree is None:
                places |= dict.fromkeys(_recordings_at(at))
                continue
            found = recording_names(tree)
            unused = _unused_files(tree, found)
        except _NO_SUCH_PATH as error:
            failures.append(ReadFailure(printable(str(path)), printable(str(error))))
            continue
        listed[str(at)] = tree
        for name in (*found, *unused):
            place = Path(at) / name
            if exclude(place):
                continue
            if _is_ignored(name, patterns):
                ignored.add(place)
            elif name in unused:
                skipped[str(RecordingPath(str(at), name))] = unused[name]
            else:
                places[str(at), name] = None
    recordings = {str(RecordingPath(*place)): place for place in places}  # a folder and one within it may be given
    return Discovery(
        [RecordingPath(tree, name, _stamp(tree, name, listed.get(tree))) for tree, name in recordings.values()],
        failures,
        [SkippedFile(source, reason) for source, reason in skipped.items() if source not in recordings],
        len(ignored),
    )


def _is_ignored(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, one) or fnmatch(PurePosixPath(name).name, one) for one in patterns)


def _unused_files(tree: FileTree, recordings: Iterable[str]) -> Mapping[str, str]:
    """Every file of the tree that is no recording and no part of one, and why."""
    used: set[str] = set()
    for name in recordings:
        try:
            used |= {name, *list_files(tree, name)}
        except RecordingError:  # which its row in the worklist will say
            used.add(name)
    reasons = {name: _explain_rest(tree, name) for name in tree.sizes if name not in used}
    return reasons | dict(tree.unlisted)


def skip_segments(path: RecordingPath, ignore: Iterable[str] = ()) -> list[SkippedFile]:
    """The files of the segments of a multi-segment record that cannot be read, each with what to do."""
    why = f"a part of {PurePosixPath(path.name).name}, which cannot be read; give its own path to read it alone"
    is_listed = is_url(path.tree) and bool(path.stamp) and not path.tree.lower().endswith(".zip")
    names = segment_files(path) if is_listed else list_segment_files(open_cached(path.tree), path.name)
    return [SkippedFile(str(RecordingPath(path.tree, name)), why) for name in names if not _is_ignored(name, ignore)]


def _explain_rest(tree: FileTree, name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    if not tree.size(name):
        return "an empty file"
    if is_label_table(name):
        return "a table of labels"
    if suffix == ".zip":
        return "an archive within a folder or archive; give its own path"
    if suffix in (".dat", ".mat"):
        return "a signal file that no WFDB header beside it names"
    return f"no known format ({suffix or 'no suffix'})"


def exists(path: RecordingPath) -> bool:
    """Whether this machine sees all files of the recording that existed when it was found, or has fetched it."""
    if is_url(path.tree):
        return bool(path.refused) or open_cached(path.tree, path.fetched).size(path.name) is not None
    folder = Path(path.tree)
    if not folder.is_dir():
        return folder.exists()
    now = [time_ns for time_ns, _ in read_stamps(folder, path.name)]
    before = [time_ns for time_ns, _, _ in (stamp.partition(":") for stamp in path.stamp.split())]
    return (folder / path.name).exists() and all(new for old, new in zip(before, now, strict=False) if old != "0")


def is_settled(path: RecordingPath) -> bool:
    """Whether all its files exist and have not changed for 2 s; one with a file missing counts after a minute.

    A time of change in the future is that of a clock that was set back: it says nothing, and waiting for it is endless.
    """
    folder = Path(path.tree)
    if is_url(path.tree):
        times_ns = [int(stamp.partition(":")[0]) for stamp in path.stamp.split()]
    elif folder.is_dir():
        times_ns = [time_ns for time_ns, _ in read_stamps(folder, path.name)]
    else:
        return True
    age_s = abs(time.time() - max(filter(None, times_ns), default=0) / 1e9)
    return age_s > (_SETTLED_S if all(times_ns) else _INCOMPLETE_S)


def locate(path: str | Path) -> RecordingPath:
    """Location of the one recording that `path` names; raises for a folder, an archive or nothing."""
    path = _resolve(path) if is_url(path) else resolve_sample(path)
    if isinstance(path, str):
        found = list(recordings_at_url(path))
        if not found or found[0][0] == path:
            raise RecordingError(
                f"{path}: expected one recording, found a folder or an archive; add /NAME of one in it"
            )
        return RecordingPath(*found[0])
    if path.is_dir() or enclosing_archive(path) == path:
        kind = "a folder" if path.is_dir() else "an archive; add /NAME of a record in it"
        raise RecordingError(f"{path}: expected one recording, found {kind}")
    ((tree, name),) = _recordings_at(path)
    return RecordingPath(tree, name, _stamp(tree, name))


def enclosing_archive(path: Path) -> Path | None:
    """The zip archive that `path` is, or goes through."""
    for candidate in (path, *path.parents):
        if candidate.suffix.lower() == ".zip" and candidate.is_file():
            return candidate
    return None


def _resolve(path: str | Path) -> str | Path:
    """A URL as it is, or the absolute path of a file of this machine."""
    location = parse_location(path)
    return resolve_sample(location).resolve() if isinstance(location, Path) else location


def _recordings_at(path: str | Path) -> Iterator[tuple[str, str]]:
    """(folder or archive, name in it) of every recording at `path`."""
    if isinstance(path, str):
        yield from recordings_at_url(path)
        return
    archive = enclosing_archive(path)
    if archive is not None and archive != path:
        yield str(archive), find_in_archive(open_tree(archive), path.relative_to(archive).as_posix())
    elif path.is_dir() or path.suffix.lower() == ".zip":
        yield from ((str(path), name) for name in recording_names(open_tree(path)))
    elif path.is_file() or Folder(path.parent).size(f"{path.name}.hea") is not None:
        yield str(path.parent), _header_of(path.parent, path.name if path.is_file() else f"{path.name}.hea")
    else:
        raise RecordingError(f"{path}: expected a recording, a folder or an archive, found no such file")


def _header_of(folder: Path, name: str) -> str:
    """The WFDB header that a signal file belongs to, or the file itself."""
    stem, _, ending = name.rpartition(".")
    header = f"{stem}.hea"
    return header if ending in ("dat", "mat") and (folder / header).is_file() else name


def _stamp(tree: str, name: str, listed: FileTree | None = None) -> str:
    if is_url(tree):
        is_file = not listed and not tree.lower().endswith(".zip")
        return listed.stamp(name) if isinstance(listed, ListedFolder) else RemoteStore(tree).stamp(name * is_file)
    folder = Path(tree)
    if folder.is_dir():
        return " ".join(f"{time_ns}:{size}" for time_ns, size in read_stamps(folder, name))
    return f"{folder.stat().st_mtime_ns}:{folder.stat().st_size}"


def open_recording(path: RecordingPath) -> FileTree:
    """The folder or archive of a recording; raises for one of which a file was refused."""
    if path.refused:
        raise RecordingError(path.refused)
    return open_cached(path.tree, path.fetched)


@lru_cache(maxsize=4)
def open_cached(tree: str, fetched: str = "") -> FileTree:
    """Open a folder or archive; the last few stay open, since many recordings share one."""
    folder = Path(tree)
    if is_url(tree):
        return open_fetched(tree, fetched)
    return Folder(folder) if folder.is_dir() else open_tree(folder)
