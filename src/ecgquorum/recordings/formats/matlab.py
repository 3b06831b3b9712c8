"""MATLAB files: the struct `ECG` of the original CPSC 2018 release, or a plain matrix `val`, `data` or `signal`."""

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.formats.mat5 import MatError, matrix, struct_field, variables
from ecgquorum.recordings.leads import STANDARD_LEADS
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples

CPSC_RATE_HZ = 500.0
_FILE_BYTES = 64 << 20
_PLAIN = ("val", "data", "signal")
_MOST_LEADS = 64


@reader(".mat")
def read_mat(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read 12 leads at 500 Hz in mV from a struct ECG, or a plain matrix with the rate and unit of `defaults`."""
    where, stem = file.path, file.stem
    content = file.read(_FILE_BYTES)
    try:
        plain = next((found for found in variables(content) if found in _PLAIN), None)
        if plain is None:
            data = struct_field(content, "ECG", "data")
            if data.ndim != 2 or len(data) != len(STANDARD_LEADS):
                raise RecordingError(f"{where}: expected ECG.data as 12 leads x time, found the shape {data.shape}")
            return Recording(stem, data, CPSC_RATE_HZ, STANDARD_LEADS, source=where)
        data = matrix(content, plain)
    except MatError as error:
        expected = f"a MATLAB struct ECG with a field data, or a matrix {', '.join(_PLAIN)}"
        raise RecordingError(f"{where}: expected {expected}, found: {error}") from error
    data = data.T if data.shape[0] > data.shape[1] else data
    if len(data) > _MOST_LEADS:
        raise RecordingError(f"{where}: expected at most {_MOST_LEADS} leads, found {len(data)}")
    leads, rate_hz = defaults.lead_names(where, len(data)), defaults.rate(where)
    factor, unit = defaults.millivolts(where), defaults.units or ""
    return Recording(stem, as_samples(data * factor), rate_hz, leads, source=where, unit=unit)
