"""Which files belong to a WFDB record: its header, its signal files, and the segments of a multi-segment record."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree, Folder

HEADER = ".hea"
SIGNAL_SUFFIXES = (".dat", ".mat")
GAP = "~"
"""Name of a segment, or of a signal file in a layout header, that does not exist."""


def signal_files(header: bytes) -> list[str]:
    """The files beside a WFDB header that it names, each once: signal files, or the headers of segments.

    Paths to other folders, and names that no file can have, are left out.
    """
    lines = _lines(header)
    suffix = HEADER if is_multi_segment(header) else ""
    names = dict.fromkeys(line[0] for line in lines[1:] if line[0] != GAP)
    return [f"{name}{suffix}" for name in names if PurePosixPath(name).name == name and "\0" not in name]


def is_multi_segment(header: bytes) -> bool:
    """Whether a header lists segments, as in `s25047/20 3 125 543240`."""
    lines = _lines(header)
    return bool(lines) and "/" in lines[0][0]


def _lines(header: bytes) -> list[list[str]]:
    words = [line.split() for line in header.decode("latin-1").splitlines()]
    return [line for line in words if line and not line[0].startswith("#")]


def list_files(tree: FileTree, name: str) -> list[str]:
    """The files of the recording `name`: a WFDB header, its segments and signal files, or the one file."""
    if not name.lower().endswith(HEADER):
        return [name]
    folder = PurePosixPath(name).parent
    files = [name]
    for file in signal_files(tree.read(name)):
        inner = (folder / file).as_posix()
        if file.endswith(HEADER) and tree.size(inner) is not None:
            files += [inner, *((folder / one).as_posix() for one in signal_files(tree.read(inner)))]
        else:
            files.append(inner)
    return list(dict.fromkeys(files))


def list_segment_files(tree: FileTree, name: str) -> list[str]:
    """Files of the segments of a multi-segment record that exist; none for other recordings."""
    try:
        if not name.lower().endswith(HEADER) or not is_multi_segment(tree.read(name)):
            return []
        return [file for file in list_files(tree, name)[1:] if tree.size(file) is not None]
    except RecordingError:  # the header itself is gone or damaged, which its own failure says
        return []


def segments_and_signals(tree: FileTree, names: Iterable[str]) -> set[str]:
    """Files that are parts of a multi-segment record: no recordings of their own.

    Headers are read only in folders where one of them has no signal file of its own name, as all multi-segment records
    or their segments have none.
    """
    by_folder: dict[PurePosixPath, list[str]] = defaultdict(list)
    known = set(names)
    for name in known:
        if name.endswith(HEADER):
            by_folder[PurePosixPath(name).parent].append(name)
    parts: set[str] = set()
    for headers in by_folder.values():
        stems = (name.removesuffix(HEADER) for name in headers)
        if all(any(f"{stem}{suffix}" in known for suffix in SIGNAL_SUFFIXES) for stem in stems):
            continue
        for name in headers:
            try:
                if is_multi_segment(tree.read(name)):
                    parts.update(list_files(tree, name)[1:])
            except RecordingError:  # one damaged file must not hide the others
                continue
    return parts


def read_stamps(folder: Path, name: str) -> list[tuple[int, int]]:
    """(modification time in ns, size in bytes) of each file of the recording; (0, 0) for one that does not exist."""
    try:
        names = list_files(Folder(folder), name)
    except RecordingError:
        names = [name]
    return [_file_stamp(folder / file) for file in names]


def _file_stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
