"""Read one recording from a path."""

from pathlib import Path

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, locate, open_recording
from ecgquorum.recordings.file_defaults import NO_DEFAULTS, FileDefaults
from ecgquorum.recordings.readers import read_from
from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.remote_files import fetch_recordings
from ecgquorum.recordings.sandbox import LIMITS, Sandbox


def read(
    path: str | Path, defaults: FileDefaults = NO_DEFAULTS, *, as_stated: bool = False, sandbox: bool = False
) -> Recording:
    """Read one recording, in any of the formats of `READERS`.

    `path` names a file, a WFDB record also by its signal file or without a suffix (`A00001.hea`, `A00001.mat`,
    `A00001`), or a file inside a zip archive (`training2017.zip/training2017/A00001`; folders inside the archive may be
    left out if the name is unique).

    defaults:  rate, leads and units of files that hold samples only
    as_stated: keep the unit that the file states even where it cannot be true; else `Recording.correction` says what
               was changed
    sandbox:   read in a worker process with a time and a memory limit, for files that are not trusted
    """
    with fetch_recordings([locate(path)]) as here:
        if not sandbox:
            return read_path(defaults, as_stated, here[0])
        with Sandbox(read_path, (defaults, as_stated), LIMITS) as workers:
            (outcome,) = workers.run(here)
    if isinstance(outcome, ReadFailure):
        raise RecordingError(outcome.reason)
    return outcome


def read_path(defaults: FileDefaults, as_stated: bool, path: RecordingPath) -> Recording:
    """Read the recording at this path, in this process."""
    return read_from(open_recording(path), path.name, defaults, as_stated=as_stated)
