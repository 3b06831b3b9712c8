"""From a stream of bytes and a name to a recording that waits for the worker."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from ecgquorum.recordings.readers import FORMATS, claimed_suffixes, signal_files
from ecgquorum.service.desk import Desk
from ecgquorum.service.files import Kept, ending_of
from ecgquorum.service.http_errors import TooLarge, Unprocessable, Unsupported
from ecgquorum.service.store import recordings
from ecgquorum.service.store.recordings import HEADER, SIGNAL_ENDINGS, Arrived
from ecgquorum.service.store.tables import FileRow, RecordingRow, State

_HEADER_BYTES = 1 << 20
_MOST_SIGNAL_FILES = 64
_LONGEST_NAME = 200
_DICOM_BEGINS = 132
_SELF_DESCRIBING_MAT = b"MATLAB 5.0"
KNOWN_ENDINGS = (HEADER, *SIGNAL_ENDINGS, *sorted(claimed_suffixes()))


@dataclass(frozen=True)
class Uploaded:
    """What became of an upload: the recording that it belongs to, and the names of files that are still missing."""

    row: RecordingRow
    is_new: bool
    missing: tuple[str, ...]


def clean_name(name: str) -> str:
    """The last part of what a client calls a file, without anything that is not to be printed."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(character if character.isprintable() else "?" for character in last)
    return " ".join(printable.split())[-_LONGEST_NAME:]


async def receive(
    desk: Desk, uploader: str, name: str, chunks: AsyncIterator[bytes], declared_bytes: int | None = None
) -> Uploaded:
    """Take a file; when this returns, nothing loses it any more. The same bytes again change nothing."""
    name = clean_name(name)
    ending = ending_of(name)
    limit = min(desk.settings.upload_bytes, _HEADER_BYTES) if ending == HEADER else desk.settings.upload_bytes
    if ending not in ("", *KNOWN_ENDINGS):
        raise Unsupported(f"expected a recording ({FORMATS}), found a name that ends in {ending}")
    if declared_bytes is not None and declared_bytes > limit:
        raise TooLarge(f"expected at most {limit} bytes, found {declared_bytes}; cut the recording in parts")
    kept = await desk.files.keep(chunks, limit)
    return await anyio.to_thread.run_sync(partial(_admitted, desk, uploader, name, ending, kept))


def _admitted(desk: Desk, uploader: str, name: str, ending: str, kept: Kept) -> Uploaded:
    arrived = _arrived(desk, name, ending, kept)
    with desk.store.writing() as session:
        row, is_new = recordings.admit(session, desk.store.now(), uploader, arrived)
        return Uploaded(row, is_new, missing_files(row, recordings.files_of(session, row.id)))


def _arrived(desk: Desk, name: str, ending: str, kept: Kept) -> Arrived:
    alone = ending not in (HEADER, ".dat")
    signals: tuple[str, ...] = ()
    if ending == HEADER:
        named = signal_files(desk.files.read(kept.sha256, _HEADER_BYTES))
        if len(named) > _MOST_SIGNAL_FILES or any(len(one) > _LONGEST_NAME or not one.isprintable() for one in named):
            raise Unprocessable(
                f"{name}: expected a header of at most {_MOST_SIGNAL_FILES} signal files, found another"
            )
        signals = tuple(named)
    elif ending == ".mat":
        alone = desk.files.read(kept.sha256, len(_SELF_DESCRIBING_MAT)) == _SELF_DESCRIBING_MAT
    elif ending == "":
        if desk.files.read(kept.sha256, _DICOM_BEGINS)[128:] != b"DICM":
            raise Unsupported(f"expected a recording ({FORMATS}), found a name without an ending")
        ending = ".dcm"
    return Arrived(kept.sha256, kept.n_bytes, name, ending, alone, signals)


def missing_files(row: RecordingRow, files: Sequence[FileRow]) -> tuple[str, ...]:
    """Names of files that a recording still waits for."""
    if row.state != State.INCOMPLETE:
        return ()
    if files[0].ending in SIGNAL_ENDINGS:
        return ("its header (.hea)",)
    return tuple(file.name for file in files if file.sha256 is None)
