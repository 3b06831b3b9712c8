"""Read one recording: find the reader of a file by suffix or content, in folders and archives.

A new format is one file with a function declared by `reader`, and one line in `READERS`; other packages add theirs by
entry points of the group `ecgquorum.readers`.
"""

import warnings
from functools import lru_cache
from pathlib import PurePosixPath

from ecgquorum.errors import RecordingError, RegistryError
from ecgquorum.recordings.calibration import remove_calibration
from ecgquorum.recordings.file_defaults import NO_DEFAULTS, FileDefaults
from ecgquorum.recordings.filetree import FileTree, OpenedFile
from ecgquorum.recordings.reader_protocol import HEAD_BYTES, Reader
from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.unit_correction import correct_units
from ecgquorum.recordings.wfdb_files import HEADER, SIGNAL_SUFFIXES, segments_and_signals
from ecgquorum.registry import Registry

_FORMATS = "ecgquorum.recordings.formats"
READERS: Registry[Reader] = Registry(
    "reader",
    {
        "wfdb": f"{_FORMATS}.wfdb_record:read_wfdb",
        "edf": f"{_FORMATS}.edf:read_edf",
        "dicom": f"{_FORMATS}.dicom:read_dicom",
        "matlab": f"{_FORMATS}.matlab:read_mat",
        "xml": f"{_FORMATS}.xml_ecg:read_xml",
        "scp": f"{_FORMATS}.ecgdatakit_files:read_scp",
        "ishne": f"{_FORMATS}.ecgdatakit_files:read_ishne",
        "mfer": f"{_FORMATS}.ecgdatakit_files:read_mfer",
        "mortara": f"{_FORMATS}.ecgdatakit_files:read_mortara",
        "kardia": f"{_FORMATS}.ecgdatakit_files:read_kardia",
        "atc": f"{_FORMATS}.alivecor:read_atc",
        "table": f"{_FORMATS}.delimited_text:read_table",
        "npy": f"{_FORMATS}.numpy_arrays:read_npy",
        "npz": f"{_FORMATS}.numpy_arrays:read_npz",
    },
)

FORMATS = (
    "WFDB (.hea with .dat or .mat), EDF, BDF, DICOM, SCP-ECG, ISHNE, MFER, MATLAB, CSV, TSV, NPY, NPZ, ATC, "
    "Kardia JSON, aECG, MUSE, SierraECG or Mortara XML"
)
_LABEL_FILES = ("labels.csv", "reference")


def read_from(tree: FileTree, name: str, defaults: FileDefaults = NO_DEFAULTS, *, as_stated: bool = False) -> Recording:
    """Read the recording that file `name` of the tree belongs to, in this process.

    as_stated: keep the unit that the file states even where it cannot be true
    """
    file = OpenedFile(tree, _header_or_name(tree, name))
    if tree.size(file.name) is None:
        raise RecordingError(f"{tree.where(name)}: expected a recording, found no such file")
    chosen = find_reader(file)
    if chosen is None:
        raise RecordingError(f"{tree.where(name)}: expected {FORMATS}, found none of them")
    recording = chosen(file, defaults)
    return remove_calibration(recording if as_stated else correct_units(recording, defaults.units))


def find_reader(file: OpenedFile) -> Reader | None:
    """The reader of a file.

    Of the readers that claim its suffix, the first that recognises its content, else the first that has no `recognise`,
    else the first. A file with an unclaimed suffix is read by the first reader with `any_suffix` that recognises it.
    """
    by_suffix = _readers_by_suffix(tuple(READERS.names()))
    claimed = by_suffix.get(PurePosixPath(file.name).suffix.lower(), ())
    if len(claimed) == 1:
        return claimed[0]
    head = file.head(HEAD_BYTES)
    if not claimed:
        return recognise_content(head)
    found = next((one for one in claimed if one.recognise and one.recognise(head)), None)
    return found or next((one for one in claimed if one.recognise is None), claimed[0])


def recognise_content(head: bytes) -> Reader | None:
    """The reader that knows a file of any suffix by its first `HEAD_BYTES`."""
    readers = _readers_by_suffix(tuple(READERS.names()))[None]
    return next((one for one in readers if one.recognise and one.recognise(head)), None)


def claimed_suffixes() -> set[str]:
    """Every suffix that a reader claims, in lower case."""
    return {suffix for suffix in _readers_by_suffix(tuple(READERS.names())) if suffix}


@lru_cache(maxsize=4)
def _readers_by_suffix(names: tuple[str, ...]) -> dict[str | None, tuple[Reader, ...]]:
    """Suffix -> the readers that claim it; None -> those with `any_suffix`."""
    found: dict[str | None, tuple[Reader, ...]] = {None: ()}
    for name in names:
        try:
            one = READERS.get(name)
        except RegistryError as error:  # another package's reader must not stop ours
            warnings.warn(str(error), stacklevel=2)
            continue
        for suffix in (*one.suffixes, *((None,) if one.any_suffix else ())):
            found[suffix] = (*found.get(suffix, ()), one)
    return found


def _header_or_name(tree: FileTree, name: str) -> str:
    """The WFDB header of a signal file, or of a record named without a suffix, where there is one; else the name."""
    path = PurePosixPath(name)
    stem = name.removesuffix(path.suffix) if path.suffix.lower() in SIGNAL_SUFFIXES else name
    return f"{stem}{HEADER}" if tree.size(f"{stem}{HEADER}") is not None else name


def recording_names(tree: FileTree) -> list[str]:
    """One file name for each recording in the tree, without label tables and the parts of WFDB records."""
    names = tree.sizes
    stems = {name.removesuffix(HEADER) for name in names if name.endswith(HEADER)}
    parts = segments_and_signals(tree, names)
    return sorted(name for name in names if name not in parts and _is_recording(tree, name, stems))


def _is_recording(tree: FileTree, name: str, stems: set[str]) -> bool:
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    if suffix in SIGNAL_SUFFIXES and name.removesuffix(path.suffix) in stems:
        return False
    if suffix in claimed_suffixes():
        return not is_label_table(name)
    try:
        return find_reader(OpenedFile(tree, name)) is not None
    except RecordingError:  # one damaged file must not hide the others
        return False


def is_label_table(name: str) -> bool:
    """Whether a file is called as tables of labels are."""
    path = PurePosixPath(name.lower())
    return path.suffix == ".csv" and path.name.startswith(_LABEL_FILES)


def find_in_archive(tree: FileTree, name: str) -> str:
    """The full name of the one recording that the user calls `name` inside an archive."""
    names = recording_names(tree)
    stem = name.rsplit(".", 1)[0] if name.endswith((HEADER, *SIGNAL_SUFFIXES)) else name
    for candidate in names:
        if stem in (candidate, candidate.rsplit(".", 1)[0]):
            return candidate
    matches = [n for n in names if stem in (PurePosixPath(n).name, PurePosixPath(n).stem)]
    if len(matches) == 1:
        return matches[0]
    found = f"{len(matches)} of that name: {', '.join(matches[:3])}" if matches else "none of that name"
    raise RecordingError(f"{tree.path}: expected one recording called {name}, found {found}")
