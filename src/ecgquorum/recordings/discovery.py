"""Where recordings are: found below paths, told apart from what is still on its way or has changed since."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree, Folder, open_tree
from ecgquorum.recordings.readers import enclosing_archive, files_of, find_in_archive, recording_names
from ecgquorum.recordings.samples import resolve_sample

_SETTLED_S, _GIVEN_UP_S = 2.0, 60.0


@dataclass(frozen=True)
class RecordingPath:
    """Where a recording is: a folder or archive, and the name in it.

    stamp: when its files last changed and how large they were, when this was looked at
    """

    tree: str
    name: str
    stamp: str = ""

    def __str__(self) -> str:
        return printable(str(Path(self.tree) / self.name))


@dataclass(frozen=True)
class ReadFailure:
    """A recording that could not be made ready, and why."""

    place: RecordingPath
    reason: str
    sha256: str = ""


def printable(text: str) -> str:
    """The text with what is no Unicode in a file's name spelled out, so that it can be written anywhere."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def discover_recordings(
    paths: Iterable[str | Path], without: Path | None = None
) -> Iterator[RecordingPath | ReadFailure]:
    """Every recording that the paths name, once: files, folders, archives; what is not there is told in its place.

    without: a file to leave out
    """
    seen: set[tuple[str, str]] = set()
    for path in map(Path, paths):
        try:
            found = list(_named_by(resolve_sample(path).resolve()))
        except (RecordingError, OSError) as error:
            yield ReadFailure(RecordingPath(str(path.parent), path.name), str(error))
            continue
        for tree, name in found:
            if Path(tree) / name != without and (tree, name) not in seen:
                seen.add((tree, name))
                yield RecordingPath(tree, name, _stamp(tree, name))


def is_there(place: RecordingPath) -> bool:
    """Whether this machine sees all of the recording's files that were seen before, or the archive that it is in."""
    folder = Path(place.tree)
    if not folder.is_dir():
        return folder.exists()
    now = [when for when, _ in _changed(folder, place.name)]
    before = [when for when, _, _ in (stamp.partition(":") for stamp in place.stamp.split())]
    return (folder / place.name).exists() and all(when for was, when in zip(before, now, strict=False) if was != "0")


def is_settled(place: RecordingPath) -> bool:
    """Whether all of its files are there and have not changed for a moment; some may be missing for good."""
    folder = Path(place.tree)
    if not folder.is_dir():
        return True
    changed = _changed(folder, place.name)
    age_s = time.time() - max((when for when, _ in changed if when), default=0) / 1e9
    return age_s > (_SETTLED_S if all(when for when, _ in changed) else _GIVEN_UP_S)


def _named_by(path: Path) -> Iterator[tuple[str, str]]:
    """(folder or archive, name in it)."""
    archive = enclosing_archive(path)
    if archive is not None and archive != path:
        yield str(archive), find_in_archive(open_tree(archive), path.relative_to(archive).as_posix())
    elif path.is_dir() or path.suffix.lower() == ".zip":
        yield from ((str(path), name) for name in recording_names(open_tree(path)))
    elif path.is_file() or Folder(path.parent).size(f"{path.name}.hea") is not None:
        yield str(path.parent), _header_of(path.parent, path.name if path.is_file() else f"{path.name}.hea")
    else:
        raise RecordingError(f"{path}: expected a recording, a folder or an archive, found nothing")


def _header_of(folder: Path, name: str) -> str:
    """The header of a signal file that has one."""
    stem, _, ending = name.rpartition(".")
    header = f"{stem}.hea"
    return header if ending in ("dat", "mat") and (folder / header).is_file() else name


def _stamp(tree: str, name: str) -> str:
    folder = Path(tree)
    if folder.is_dir():
        return " ".join(f"{when}:{size}" for when, size in _changed(folder, name))
    return f"{folder.stat().st_mtime_ns}:{folder.stat().st_size}"


def _changed(folder: Path, name: str) -> list[tuple[int, int]]:
    """When each of the recording's files changed, in nanoseconds, and its size; (0, 0) for one that is not there."""
    try:
        names = files_of(Folder(folder), name)
    except RecordingError:
        names = [name]
    return [_file_stamp(folder / file) for file in names]


def _file_stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4)
def opened(tree: str) -> FileTree:
    """The folder or archive of a place, opened once for several recordings."""
    folder = Path(tree)
    return Folder(folder) if folder.is_dir() else open_tree(folder)
