"""ECG recordings: the data model, readers and writers of many formats, and discovery in folders and archives."""

from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD
from ecgquorum.recordings.readers import Unreadable, read, read_all
from ecgquorum.recordings.recording import Recording, recordings_from_array
from ecgquorum.recordings.samples import resolve_sample, sample_names
from ecgquorum.recordings.writers import write

__all__ = [
    "STANDARD_LEADS",
    "UNNAMED_LEAD",
    "FileDefaults",
    "Recording",
    "Unreadable",
    "read",
    "read_all",
    "recordings_from_array",
    "resolve_sample",
    "sample_names",
    "write",
]
