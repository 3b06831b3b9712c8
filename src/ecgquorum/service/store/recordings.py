"""Add uploaded files to recordings: one recording per content; a WFDB recording waits for all of its files."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.http_errors import NotFoundError
from ecgquorum.service.store import audit
from ecgquorum.service.store.reviews import visible_state
from ecgquorum.service.store.tables import FileRow, RecordingRow, SenderRow, State

HEADER = ".hea"
SIGNAL_ENDINGS = (".dat", ".mat")


@dataclass(frozen=True)
class IncomingFile:
    """An uploaded file.

    name:    last part of the client's file name
    alone:   whether it is a whole recording by itself
    signals: names of the signal files of a WFDB header
    """

    sha256: str
    n_bytes: int
    name: str
    ending: str
    alone: bool = True
    signals: tuple[str, ...] = ()


def add_file(session: Session, at: str, uploader: str, file: IncomingFile) -> tuple[RecordingRow, bool]:
    """Add a file; returns its recording, and whether anything is new."""
    if file.ending == HEADER:
        row, is_new = _add_header(session, at, uploader, file)
    else:
        row, is_new = _add_signal_file(session, at, uploader, file)
    _note_sender(session, at, uploader, file.name, row)
    if is_new:
        details = {"sha256": file.sha256, "bytes": file.n_bytes, "state": visible_state(row)}
        audit.append(session, at, uploader, "uploaded", row.id, details)
    return row, is_new


def _note_sender(session: Session, at: str, uploader: str, name: str, row: RecordingRow) -> None:
    """Remember that another uploader sent the same recording: they may see its state."""
    if row.uploader != uploader and session.get(SenderRow, (row.id, uploader)) is None:
        session.add(SenderRow(recording_id=row.id, uploader=uploader, name=name, at=at))
        session.flush()


def _add_header(session: Session, at: str, uploader: str, file: IncomingFile) -> tuple[RecordingRow, bool]:
    known = _recordings_with_file(session, file.sha256, HEADER)
    waiting = next((row for row in known if row.state == State.INCOMPLETE and row.uploader == uploader), None)
    if waiting:
        return waiting, False
    orphans = _orphans(session, uploader, file.signals)
    complete = next((row for row in known if row.identity), None)
    if complete and not orphans:
        return complete, False
    row = next(iter(orphans.values()), None) or _add_recording(session, at, uploader, file)
    row.name = file.name
    there = {name: _state_of(list_files(session, orphan.id)[0]) for name, orphan in orphans.items()}
    for orphan in orphans.values():
        if orphan is not row:
            orphan.state, orphan.merged_into = State.MERGED, row.id
    if row in orphans.values():
        session.delete(list_files(session, row.id)[0])
        session.flush()
    rows = [FileRow(place=0, name=file.name, ending=HEADER, sha256=file.sha256, n_bytes=file.n_bytes)]
    for place, name in enumerate(file.signals, start=1):
        ending, sha256, n_bytes = there.get(name, (".dat", None, None))
        rows.append(FileRow(place=place, name=name, ending=ending, sha256=sha256, n_bytes=n_bytes))
    for one in rows:
        one.recording_id = row.id
        session.add(one)
    session.flush()
    return _complete(session, at, row), True


def _state_of(file: FileRow) -> tuple[str, str | None, int | None]:
    return file.ending, file.sha256, file.n_bytes


def _add_signal_file(session: Session, at: str, uploader: str, file: IncomingFile) -> tuple[RecordingRow, bool]:
    wanted = session.scalars(
        select(FileRow)
        .join(RecordingRow, RecordingRow.id == FileRow.recording_id)
        .where(RecordingRow.uploader == uploader, RecordingRow.state == State.INCOMPLETE)
        .where(FileRow.name == file.name, FileRow.sha256.is_(None))
        .order_by(RecordingRow.uploaded_at)
    ).first()
    if wanted is not None and file.ending in SIGNAL_ENDINGS:
        wanted.sha256, wanted.n_bytes, wanted.ending = file.sha256, file.n_bytes, file.ending
        session.flush()
        return _complete(session, at, session.get_one(RecordingRow, wanted.recording_id)), True
    known = [row for row in _recordings_with_file(session, file.sha256) if row.identity or row.uploader == uploader]
    for row in sorted(known, key=lambda one: one.identity is None):
        names = {one.name for one in list_files(session, row.id)}
        if file.alone or file.name in names:
            return row, False
    row = _add_recording(session, at, uploader, file)
    session.add(
        FileRow(
            recording_id=row.id,
            place=0,
            name=file.name,
            ending=file.ending,
            sha256=file.sha256,
            n_bytes=file.n_bytes,
        )
    )
    session.flush()
    return (_complete(session, at, row) if file.alone else row), True


def _add_recording(session: Session, at: str, uploader: str, file: IncomingFile) -> RecordingRow:
    row = RecordingRow(
        id=secrets.token_hex(16),
        name=file.name,
        uploader=uploader,
        state=State.INCOMPLETE,
        uploaded_at=at,
        attempts=0,
        audited=False,
        priority=0.0,
    )
    session.add(row)
    session.flush()
    return row


def _complete(session: Session, at: str, row: RecordingRow) -> RecordingRow:
    """Queue the recording if all of its files are there; an older recording with the same content replaces it."""
    hashes = [file.sha256 for file in list_files(session, row.id)]
    if None in hashes:
        return row
    identity = content_identity([str(sha256) for sha256 in hashes])
    older = find_content(session, identity)
    if older is not None:
        row.state, row.merged_into = State.MERGED, older.id
        return older
    row.identity, row.state, row.completed_at = identity, State.WAITING, at
    session.flush()
    return row


def content_identity(hashes: Sequence[str]) -> str:
    """The identity of a recording whose files have these hashes, in order."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def find_content(session: Session, identity: str) -> RecordingRow | None:
    """The recording with this content, if the desk has it."""
    return session.scalars(select(RecordingRow).where(RecordingRow.identity == identity)).first()


def _recordings_with_file(session: Session, sha256: str, ending: str | None = None) -> Sequence[RecordingRow]:
    """Recordings that contain this file, oldest first."""
    query = (
        select(RecordingRow)
        .join(FileRow, FileRow.recording_id == RecordingRow.id)
        .where(FileRow.sha256 == sha256, RecordingRow.state != State.MERGED)
        .order_by(RecordingRow.uploaded_at)
    )
    return session.scalars(query if ending is None else query.where(FileRow.ending == ending)).unique().all()


def _orphans(session: Session, uploader: str, names: Sequence[str]) -> dict[str, RecordingRow]:
    """The uploader's signal files without a header, by name; the latest of each name."""
    rows = session.execute(
        select(FileRow.name, RecordingRow)
        .join(RecordingRow, RecordingRow.id == FileRow.recording_id)
        .where(RecordingRow.uploader == uploader, RecordingRow.state == State.INCOMPLETE)
        .where(FileRow.place == 0, FileRow.ending.in_(SIGNAL_ENDINGS), FileRow.name.in_(names))
        .order_by(RecordingRow.uploaded_at)
    )
    return {name: row for name, row in rows}  # noqa: C416 (rows are not pairs to the type checker)


def list_files(session: Session, recording_id: str) -> Sequence[FileRow]:
    """The files of a recording, in order."""
    return session.scalars(select(FileRow).where(FileRow.recording_id == recording_id).order_by(FileRow.place)).all()


def list_files_of(session: Session, ids: Sequence[str]) -> dict[str, list[FileRow]]:
    """The files of several recordings, in order, by the recording's id."""
    found: dict[str, list[FileRow]] = {one: [] for one in ids}
    for file in session.scalars(select(FileRow).where(FileRow.recording_id.in_(ids)).order_by(FileRow.place)):
        found[file.recording_id].append(file)
    return found


def find_recording(session: Session, recording_id: str) -> RecordingRow:
    """The recording with this id, or the one that it was merged into."""
    row = session.get(RecordingRow, recording_id)
    while row is not None and row.merged_into:
        row = session.get(RecordingRow, row.merged_into)
    if row is None:
        raise NotFoundError("there is no recording with this id")
    return row
