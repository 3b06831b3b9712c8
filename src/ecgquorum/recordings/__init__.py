"""ECG recordings: the data model, readers and writers, discovery in folders and archives, the sandbox."""

from ecgquorum.recordings.acquisition import Acquisition
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, discover_recordings
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD
from ecgquorum.recordings.read_recording import read
from ecgquorum.recordings.reader_protocol import Reader, reader
from ecgquorum.recordings.readers import READERS
from ecgquorum.recordings.recording import Recording, recordings_from_array
from ecgquorum.recordings.samples import resolve_sample, sample_names
from ecgquorum.recordings.sandbox import SandboxLimits
from ecgquorum.recordings.writers import write

__all__ = [
    "READERS",
    "STANDARD_LEADS",
    "UNNAMED_LEAD",
    "Acquisition",
    "FileDefaults",
    "OpenedFile",
    "ReadFailure",
    "Reader",
    "Recording",
    "RecordingPath",
    "SandboxLimits",
    "discover_recordings",
    "read",
    "reader",
    "recordings_from_array",
    "resolve_sample",
    "sample_names",
    "write",
]
