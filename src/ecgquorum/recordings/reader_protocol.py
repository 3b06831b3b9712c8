"""What a reader is: a function from an opened file to a `Recording`, with the suffixes it claims."""

from collections.abc import Callable
from typing import Any, Protocol, cast

from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.recording import Recording

HEAD_BYTES = 4096
"""How many bytes `Reader.recognise` is given, fewer where the file is shorter."""

Recognise = Callable[[bytes], bool]


class Reader(Protocol):
    """A function that reads one file format; raises `RecordingError` for a file that it cannot read.

    suffixes:   endings of the files it reads, in lower case: (".edf",); none: files are recognised by content only
    recognise:  whether the first `HEAD_BYTES` of a file are of this format; None: every file with such a suffix is
    any_suffix: also read files with a suffix that no reader claims, if `recognise` accepts them
    """

    suffixes: tuple[str, ...]
    recognise: Recognise | None
    any_suffix: bool

    def __call__(self, file: OpenedFile, defaults: FileDefaults, /) -> Recording:
        """Read the file; `defaults` holds the user's values for files without rate, leads or units."""


def reader(
    *suffixes: str, recognise: Recognise | None = None, any_suffix: bool = False
) -> Callable[[Callable[[OpenedFile, FileDefaults], Recording]], Reader]:
    """Declare a function of a module to be a `Reader` for these suffixes.

    >>> @reader(".txt")
    ... def read_lines(file, defaults):
    ...     samples = [float(line) for line in file.read().split()]
    ...     return Recording(file.stem, samples, defaults.rate(file.path), ("ECG",), source=file.path)
    >>> read_lines.suffixes
    ('.txt',)
    """

    def declare(function: Callable[[OpenedFile, FileDefaults], Recording]) -> Reader:
        declared: Any = function  # the function itself, so that worker processes can import it by name
        declared.suffixes = tuple(suffix.lower() for suffix in suffixes)
        declared.recognise = recognise
        declared.any_suffix = any_suffix
        return cast("Reader", declared)

    return declare
