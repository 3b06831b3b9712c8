"""Receive uploads: store the file, and add it to a recording that waits for the worker."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from ecgquorum.recordings.reader_protocol import HEAD_BYTES
from ecgquorum.recordings.readers import FORMATS, claimed_suffixes, recognise_content
from ecgquorum.recordings.wfdb_files import is_multi_segment, signal_files
from ecgquorum.service.desk import Desk
from ecgquorum.service.erasing import remove_orphans
from ecgquorum.service.files import StoredFile, suffix_of
from ecgquorum.service.http_errors import (
    ConflictError,
    DiskFullError,
    HttpError,
    TooLargeError,
    UnprocessableError,
    UnsupportedFormatError,
)
from ecgquorum.service.store import erasure, recordings
from ecgquorum.service.store.recordings import HEADER, SIGNAL_ENDINGS, IncomingFile
from ecgquorum.service.store.tables import FileRow, RecordingRow, State

_HEADER_BYTES = 1 << 20
_MAX_SIGNAL_FILES = 64
_MAX_NAME = 200
_SELF_DESCRIBING_MAT = b"MATLAB 5.0"
_JSON = ".json"
KNOWN_ENDINGS = (HEADER, *SIGNAL_ENDINGS, *sorted(claimed_suffixes()), _JSON)


@dataclass(frozen=True)
class UploadOutcome:
    """The recording that an uploaded file belongs to, and the names of files that are still missing."""

    row: RecordingRow
    is_new: bool
    missing: tuple[str, ...]


def clean_name(name: str) -> str:
    """The last part of a client's file name, without characters that are not printable."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(character if character.isprintable() else "?" for character in last)
    return " ".join(printable.split())[-_MAX_NAME:]


async def receive_upload(
    desk: Desk, uploader: str, name: str, chunks: AsyncIterator[bytes], declared_bytes: int | None = None
) -> UploadOutcome:
    """Store an uploaded file; when this returns, it is synced to disk. The same bytes again change nothing."""
    name = clean_name(name)
    limit = check_acceptable(desk, name, declared_bytes or 0)
    await anyio.to_thread.run_sync(check_quota, desk, uploader, declared_bytes or 0)
    kept = await desk.files.store(chunks, limit)
    return await anyio.to_thread.run_sync(partial(_add_file, desk, uploader, name, kept))


def check_acceptable(desk: Desk, name: str, n_bytes: int) -> int:
    """The most bytes that a file of this name may have; raises if its suffix is unknown or it has more."""
    ending = suffix_of(name)
    limit = min(desk.settings.upload_bytes, _HEADER_BYTES) if ending == HEADER else desk.settings.upload_bytes
    if ending not in ("", *KNOWN_ENDINGS):
        raise UnsupportedFormatError(f"files named *{ending} are not supported; expected a recording ({FORMATS})")
    if n_bytes > limit:
        raise TooLargeError(f"the file has {n_bytes} bytes, more than the limit of {limit}; split the recording")
    return limit


def _add_file(desk: Desk, uploader: str, name: str, kept: StoredFile) -> UploadOutcome:
    try:
        file = inspect_file(desk, name, kept)
        with desk.store.write_session() as session:
            if not desk.files.path(kept.sha256).is_file():
                raise ConflictError("a recording with the same content was erased just now; upload the file again")
            row, is_new = recordings.add_file(session, desk.store.now(), uploader, file)
            if is_new:  # its length may not have been declared, and others may have come meanwhile
                check_quota(desk, uploader, kept.n_bytes)
            return UploadOutcome(row, is_new, missing_files(row, recordings.list_files(session, row.id)))
    except HttpError:
        remove_orphans(desk, [kept.sha256])
        raise


def check_quota(desk: Desk, uploader: str, n_bytes: int) -> None:
    """Raise if so many more bytes of this uploader would exceed a quota."""
    quotas = {"": desk.settings.quota_bytes, uploader: desk.settings.uploader_quota_bytes}
    for owner, quota in quotas.items():
        if not quota:
            continue
        with desk.store.read_session() as session:
            used = erasure.stored_bytes(session, owner)
        if used + n_bytes > quota:
            whose = f"{owner} may store" if owner else "the desk may store"
            raise DiskFullError(f"{whose} {quota} bytes and has {used}; an administrator can erase recordings")


def inspect_file(desk: Desk, name: str, kept: StoredFile) -> IncomingFile:
    """What kind of file it is: a whole recording, a WFDB header, or a signal file."""
    ending = suffix_of(name)
    alone = ending not in (HEADER, ".dat")
    signals: tuple[str, ...] = ()
    if ending == HEADER:
        header = desk.files.read(kept.sha256, _HEADER_BYTES)
        if is_multi_segment(header):
            raise UnprocessableError(f"{name}: a multi-segment WFDB record; convert it first (ecgquorum convert)")
        named = signal_files(header)
        if not named:
            raise UnprocessableError(
                f"{name}: the header names no signal file in its own folder; if it is the layout of a multi-segment "
                "WFDB record, convert the record first (ecgquorum convert)"
            )
        if len(named) > _MAX_SIGNAL_FILES or any(len(one) > _MAX_NAME or not one.isprintable() for one in named):
            raise UnprocessableError(f"{name}: the header must name at most {_MAX_SIGNAL_FILES} printable signal files")
        signals = tuple(named)
    elif ending == ".mat":
        alone = desk.files.read(kept.sha256, len(_SELF_DESCRIBING_MAT)) == _SELF_DESCRIBING_MAT
    elif ending in ("", _JSON):  # most files of this kind are no recordings
        reader = recognise_content(desk.files.read(kept.sha256, HEAD_BYTES))
        if reader is None:
            raise UnsupportedFormatError(f"{name}: no recording by its content; expected a recording ({FORMATS})")
        ending = ending or next(iter(reader.suffixes), _JSON)
    return IncomingFile(kept.sha256, kept.n_bytes, name, ending, alone, signals)


def missing_files(row: RecordingRow, files: Sequence[FileRow]) -> tuple[str, ...]:
    """Names of the missing files of an incomplete recording."""
    if row.state != State.INCOMPLETE:
        return ()
    if files[0].ending in SIGNAL_ENDINGS:
        return ("its header (.hea)",)
    return tuple(file.name for file in files if file.sha256 is None)
