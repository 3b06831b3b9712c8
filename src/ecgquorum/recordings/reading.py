"""From a path that a user types to recordings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.cpsc_mat import read_cpsc_mat
from ecgquorum.recordings.filetree import FileTree, Folder, ZipArchive, open_tree
from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.wfdb_files import read_wfdb

_SIGNAL_SUFFIXES = (".dat", ".mat")


@dataclass(frozen=True)
class Unreadable:
    """A recording that could not be read, and why."""

    source: str
    reason: str


def read(path: str | Path) -> Recording:
    """Read one recording.

    `path` names a WFDB record by its header, by its signal file or without an ending (`A00001.hea`, `A00001.mat`,
    `A00001`), a CPSC `.mat` file, or either of them inside a zip archive (`training2017.zip/training2017/A00001`;
    the folders inside may be left out when the name is unique).
    """
    path = Path(path)
    archive = _enclosing_archive(path)
    if archive is not None:
        tree: FileTree = ZipArchive(archive)
        inner = path.relative_to(archive).as_posix()
        if inner == ".":
            raise RecordingError(f"{path}: expected one recording, found an archive; add /NAME of a record in it")
        return read_from(tree, _inside(tree, inner))
    if path.is_dir():
        raise RecordingError(f"{path}: expected one recording, found a folder; use ecgquorum.read_all for folders")
    return read_from(Folder(path.parent), path.name)


def read_all(paths: Iterable[str | Path]) -> Iterator[Recording | Unreadable]:
    """Read every recording that `paths` name; folders and archives stand for all that is in them.

    A recording that cannot be read comes back as `Unreadable` in its place, and reading goes on.
    """
    for path in map(Path, paths):
        archive = _enclosing_archive(path)
        try:
            if path.is_dir() or archive == path:
                tree = open_tree(path)
                names = recording_names(tree)
                if not names:
                    raise RecordingError(f"{path}: expected recordings (.hea, .mat), found none")
            else:
                yield read(path)
                continue
        except RecordingError as error:
            yield Unreadable(str(path), str(error))
            continue
        for name in names:
            try:
                yield read_from(tree, name)
            except RecordingError as error:
                yield Unreadable(tree.where(name), str(error))


def recording_names(tree: FileTree) -> list[str]:
    """One file name for each recording in the tree: headers, and `.mat` files that have none."""
    names = tree.sizes
    headers = [name for name in names if name.endswith(".hea")]
    stems = {name.removesuffix(".hea") for name in headers}
    return sorted([*headers, *(n for n in names if n.endswith(".mat") and n.removesuffix(".mat") not in stems)])


def read_from(tree: FileTree, name: str) -> Recording:
    """Read the recording that file `name` of the tree belongs to; the name's ending may be left out."""
    path = PurePosixPath(name)
    stem = name.removesuffix(path.suffix) if path.suffix in (".hea", *_SIGNAL_SUFFIXES) else name
    if tree.size(f"{stem}.hea") is not None:
        return read_wfdb(tree, stem)
    if tree.size(f"{stem}.mat") is not None:
        return read_cpsc_mat(tree, f"{stem}.mat")
    if tree.size(name) is None:
        raise RecordingError(f"{tree.where(name)}: expected a recording, found no such file")
    raise RecordingError(
        f"{tree.where(name)}: expected a WFDB record (.hea with .dat or .mat) or a CPSC .mat file, found neither"
    )


def _enclosing_archive(path: Path) -> Path | None:
    """The zip archive that `path` is, or goes through."""
    for candidate in (path, *path.parents):
        if candidate.suffix.lower() == ".zip" and candidate.is_file():
            return candidate
    return None


def _inside(tree: FileTree, name: str) -> str:
    """The full name of what the user calls `name` inside an archive."""
    stems = {n.rsplit(".", 1)[0] for n in recording_names(tree)}
    wanted = name.rsplit(".", 1)[0] if name.endswith((".hea", *_SIGNAL_SUFFIXES)) else name
    if wanted in stems:
        return wanted
    matches = sorted(stem for stem in stems if PurePosixPath(stem).name == wanted)
    if len(matches) == 1:
        return matches[0]
    found = f"{len(matches)} of that name: {', '.join(matches[:3])}" if matches else "none of that name"
    raise RecordingError(f"{tree.path}: expected one recording called {name}, found {found}")
