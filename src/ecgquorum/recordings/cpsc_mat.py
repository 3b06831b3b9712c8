"""MATLAB files of the original CPSC 2018 release: a struct `ECG` with `data` (12 leads, 500 Hz, millivolts)."""

from pathlib import PurePosixPath

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.leads import STANDARD_LEADS
from ecgquorum.recordings.mat5 import MatError, struct_field
from ecgquorum.recordings.recording import Recording

CPSC_RATE_HZ = 500.0
_FILE_BYTES = 64 << 20


def read_cpsc_mat(tree: FileTree, name: str) -> Recording:
    """Read the `.mat` file `name`."""
    where = tree.where(name)
    try:
        data = struct_field(tree.read(name, _FILE_BYTES), "ECG", "data")
    except MatError as error:
        raise RecordingError(f"{where}: expected a MATLAB struct ECG with a field data, found: {error}") from error
    if data.ndim != 2 or len(data) != len(STANDARD_LEADS):
        raise RecordingError(f"{where}: expected ECG.data as 12 leads x time, found the shape {data.shape}")
    return Recording(PurePosixPath(name).stem, data, CPSC_RATE_HZ, STANDARD_LEADS, source=where)
