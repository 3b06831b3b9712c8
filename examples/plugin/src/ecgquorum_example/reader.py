"""A reader of text files `*.lines`: the sampling rate on the first line, then a sample in millivolts on each line."""

from ecgquorum.errors import RecordingError
from ecgquorum.recordings import FileDefaults, OpenedFile, Recording, reader


@reader(".lines")
def read_lines(file: OpenedFile, defaults: FileDefaults) -> Recording:  # noqa: ARG001 (the file says everything)
    """Read one lead."""
    try:
        rate_hz, *samples = (float(line) for line in file.read(1 << 24).split())
    except ValueError as error:
        raise RecordingError(f"{file.path}: expected one number on each line: {error}") from error
    return Recording(file.stem, samples, rate_hz, ("ECG",), source=file.path)
