"""From a path that a user types to recordings."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.file_defaults import NO_DEFAULTS, FileDefaults
from ecgquorum.recordings.filetree import FileTree, Folder, ZipArchive, open_tree
from ecgquorum.recordings.formats.matlab import read_mat
from ecgquorum.recordings.formats.wfdb_record import read_wfdb
from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.samples import resolve_sample
from ecgquorum.recordings.unit_correction import settled

Reader = Callable[[FileTree, str, FileDefaults], Recording]
READERS = {
    ".edf": ("edf", "read_edf"),
    ".dcm": ("dicom", "read_dicom"),
    ".xml": ("xml_ecg", "read_xml"),
    ".csv": ("delimited_text", "read_table"),
    ".tsv": ("delimited_text", "read_table"),
    ".npy": ("numpy_arrays", "read_npy"),
    ".npz": ("numpy_arrays", "read_npz"),
}
"""Endings beyond WFDB's and MATLAB's, and who reads them; each is imported when it is first needed."""

FORMATS = "WFDB (.hea with .dat or .mat), EDF, DICOM, MATLAB, CSV, TSV, NPY, NPZ, aECG, MUSE or SierraECG XML"
_SIGNAL_SUFFIXES = (".dat", ".mat")
_LABEL_FILES = ("labels.csv", "reference")
_DICOM_BEGINS = 132


@dataclass(frozen=True)
class Unreadable:
    """A recording that could not be read, and why."""

    source: str
    reason: str


def read(path: str | Path, hints: FileDefaults = NO_DEFAULTS, *, as_stated: bool = False) -> Recording:
    """Read one recording, in any of the formats that `FORMATS` names.

    `path` names a file, a WFDB record also by its signal file or without an ending (`A00001.hea`, `A00001.mat`,
    `A00001`), or one inside a zip archive (`training2017.zip/training2017/A00001`; the folders inside may be left out
    when the name is unique).

    hints:     rate, leads and units of files that carry samples alone
    as_stated: believe the file's unit, even one that cannot be true; else `Recording.correction` says what was done
    """
    path = resolve_sample(path)
    archive = enclosing_archive(path)
    if archive is not None:
        tree: FileTree = ZipArchive(archive)
        inner = path.relative_to(archive).as_posix()
        if inner == ".":
            raise RecordingError(f"{path}: expected one recording, found an archive; add /NAME of a record in it")
        return read_from(tree, find_in_archive(tree, inner), hints, as_stated=as_stated)
    if path.is_dir():
        raise RecordingError(f"{path}: expected one recording, found a folder; use ecgquorum.read_all for folders")
    return read_from(Folder(path.parent), path.name, hints, as_stated=as_stated)


def read_all(paths: Iterable[str | Path], hints: FileDefaults = NO_DEFAULTS) -> Iterator[Recording | Unreadable]:
    """Read every recording that `paths` name; folders and archives stand for all that is in them.

    A recording that cannot be read comes back as `Unreadable` in its place, and reading goes on.
    """
    for path in map(Path, paths):
        try:
            path = resolve_sample(path)
            archive = enclosing_archive(path)
            if path.is_dir() or archive == path:
                tree = open_tree(path)
                names = recording_names(tree)
                if not names:
                    raise RecordingError(f"{path}: expected recordings ({FORMATS}), found none")
            else:
                yield read(path, hints)
                continue
        except RecordingError as error:
            yield Unreadable(str(path), str(error))
            continue
        for name in names:
            try:
                yield read_from(tree, name, hints)
            except RecordingError as error:
                yield Unreadable(tree.where(name), str(error))


def recording_names(tree: FileTree) -> list[str]:
    """One file name for each recording in the tree; tables of labels, and signal files of headers, are none."""
    names = tree.sizes
    stems = {name.removesuffix(".hea") for name in names if name.endswith(".hea")}
    return sorted(name for name in names if _is_recording(tree, name, stems))


def _is_recording(tree: FileTree, name: str, stems: set[str]) -> bool:
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    if suffix == ".mat":
        return name.removesuffix(path.suffix) not in stems
    if suffix not in (".hea", *_SIGNAL_SUFFIXES, *READERS):
        return _looks_like_dicom(tree, name)  # whose files are often named by numbers: 1.2.840.10008.5
    labels = suffix == ".csv" and path.name.lower().startswith(_LABEL_FILES)
    return suffix == ".hea" or (suffix in READERS and not labels)


def files_of(tree: FileTree, name: str) -> list[str]:
    """The files that the recording of file `name` consists of: a WFDB header and its signal files, or the one file."""
    if not name.endswith(".hea"):
        return [name]
    folder = PurePosixPath(name).parent
    return [name, *((folder / file).as_posix() for file in signal_files(tree.read(name)))]


def signal_files(header: bytes) -> list[str]:
    """The files beside it that a WFDB header names, each once; paths that lead elsewhere are left out."""
    told = [line.split() for line in header.decode("latin-1").splitlines()]
    lines = [words for words in told if words and not words[0].startswith("#")]
    names = dict.fromkeys(words[0] for words in lines[1:])
    return [name for name in names if PurePosixPath(name).name == name]


def read_from(tree: FileTree, name: str, hints: FileDefaults = NO_DEFAULTS, *, as_stated: bool = False) -> Recording:
    """Read the recording that file `name` of the tree belongs to; a WFDB record's ending may be left out.

    as_stated: believe the file's unit, even one that cannot be true
    """
    recording = _read_as_stated(tree, name, hints)
    return recording if as_stated else settled(recording, hints.units)


def _read_as_stated(tree: FileTree, name: str, hints: FileDefaults) -> Recording:
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    stem = name.removesuffix(path.suffix) if suffix in (".hea", *_SIGNAL_SUFFIXES) else name
    if tree.size(f"{stem}.hea") is not None:
        return read_wfdb(tree, stem)
    found = tree.size(name)
    if suffix in READERS and found is not None:
        return _read_by(suffix, tree, name, hints)
    for named in (name, f"{stem}.mat"):
        if named.lower().endswith(".mat") and tree.size(named) is not None:
            return read_mat(tree, named, hints)
    if found is None:
        raise RecordingError(f"{tree.where(name)}: expected a recording, found no such file")
    if _is_dicom(tree, name):
        return _read_by(".dcm", tree, name, hints)
    raise RecordingError(f"{tree.where(name)}: expected {FORMATS}, found none of them")


def _read_by(suffix: str, tree: FileTree, name: str, hints: FileDefaults) -> Recording:
    module, function = READERS[suffix]
    reader: Reader = getattr(import_module(f"ecgquorum.recordings.formats.{module}"), function)
    return reader(tree, name, hints)


def _is_dicom(tree: FileTree, name: str) -> bool:
    return tree.first(name, _DICOM_BEGINS)[128:] == b"DICM"


def _looks_like_dicom(tree: FileTree, name: str) -> bool:
    try:
        return _is_dicom(tree, name)
    except RecordingError:  # one damaged file must not lose all that is listed with it
        return False


def enclosing_archive(path: Path) -> Path | None:
    """The zip archive that `path` is, or goes through."""
    for candidate in (path, *path.parents):
        if candidate.suffix.lower() == ".zip" and candidate.is_file():
            return candidate
    return None


def find_in_archive(tree: FileTree, name: str) -> str:
    """The full name of what the user calls `name` inside an archive."""
    names = recording_names(tree)
    wanted = name.rsplit(".", 1)[0] if name.endswith((".hea", *_SIGNAL_SUFFIXES)) else name
    for candidate in names:
        if wanted in (candidate, candidate.rsplit(".", 1)[0]):
            return candidate
    matches = [n for n in names if wanted in (PurePosixPath(n).name, PurePosixPath(n).stem)]
    if len(matches) == 1:
        return matches[0]
    found = f"{len(matches)} of that name: {', '.join(matches[:3])}" if matches else "none of that name"
    raise RecordingError(f"{tree.path}: expected one recording called {name}, found {found}")
