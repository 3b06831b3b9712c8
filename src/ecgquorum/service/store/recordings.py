"""Recordings as they come in: one by its content, WFDB pairs waited for until all of their files are there."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.http_errors import Missing
from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import FileRow, RecordingRow, State

HEADER = ".hea"
SIGNAL_ENDINGS = (".dat", ".mat")


@dataclass(frozen=True)
class Arrived:
    """A file that has come in.

    name:      the last part of what the client calls it
    alone:     it is a whole recording, whatever headers wait
    signals:   of a WFDB header, the files that it names
    """

    sha256: str
    n_bytes: int
    name: str
    ending: str
    alone: bool = True
    signals: tuple[str, ...] = ()


def admit(session: Session, at: str, uploader: str, file: Arrived) -> tuple[RecordingRow, bool]:
    """Take a file in; gives the recording that it belongs to, and whether anything is new."""
    if file.ending == HEADER:
        row, is_new = _admit_header(session, at, uploader, file)
    else:
        row, is_new = _admit_samples(session, at, uploader, file)
    if is_new:
        details = {"sha256": file.sha256, "bytes": file.n_bytes, "state": row.state}
        audit.append(session, at, uploader, "uploaded", row.id, details)
    return row, is_new


def _admit_header(session: Session, at: str, uploader: str, file: Arrived) -> tuple[RecordingRow, bool]:
    known = _with_file(session, file.sha256, HEADER)
    waiting = next((row for row in known if row.state == State.INCOMPLETE and row.uploader == uploader), None)
    if waiting:
        return waiting, False
    orphans = _orphans(session, uploader, file.signals)
    complete = next((row for row in known if row.identity), None)
    if complete and not orphans:
        return complete, False
    row = next(iter(orphans.values()), None) or _new(session, at, uploader, file)
    row.name = file.name
    there = {name: _state_of(files_of(session, orphan.id)[0]) for name, orphan in orphans.items()}
    for orphan in orphans.values():
        if orphan is not row:
            orphan.state, orphan.merged_into = State.MERGED, row.id
    if row in orphans.values():
        session.delete(files_of(session, row.id)[0])
        session.flush()
    rows = [FileRow(place=0, name=file.name, ending=HEADER, sha256=file.sha256, n_bytes=file.n_bytes)]
    for place, name in enumerate(file.signals, start=1):
        ending, sha256, n_bytes = there.get(name, (".dat", None, None))
        rows.append(FileRow(place=place, name=name, ending=ending, sha256=sha256, n_bytes=n_bytes))
    for one in rows:
        one.recording_id = row.id
        session.add(one)
    session.flush()
    return _completed(session, at, row), True


def _state_of(file: FileRow) -> tuple[str, str | None, int | None]:
    return file.ending, file.sha256, file.n_bytes


def _admit_samples(session: Session, at: str, uploader: str, file: Arrived) -> tuple[RecordingRow, bool]:
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
        return _completed(session, at, session.get_one(RecordingRow, wanted.recording_id)), True
    known = [row for row in _with_file(session, file.sha256) if row.identity or row.uploader == uploader]
    for row in sorted(known, key=lambda one: one.identity is None):
        names = {one.name for one in files_of(session, row.id)}
        if file.alone or file.name in names:
            return row, False
    row = _new(session, at, uploader, file)
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
    return (_completed(session, at, row) if file.alone else row), True


def _new(session: Session, at: str, uploader: str, file: Arrived) -> RecordingRow:
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


def _completed(session: Session, at: str, row: RecordingRow) -> RecordingRow:
    """The recording, on its way to the worker if all of its files are there; an older one of the same content wins."""
    hashes = [file.sha256 for file in files_of(session, row.id)]
    if None in hashes:
        return row
    identity = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(map(str, hashes)).encode()).hexdigest()
    older = session.scalars(select(RecordingRow).where(RecordingRow.identity == identity)).first()
    if older is not None:
        row.state, row.merged_into = State.MERGED, older.id
        return older
    row.identity, row.state, row.completed_at = identity, State.WAITING, at
    session.flush()
    return row


def _with_file(session: Session, sha256: str, ending: str | None = None) -> Sequence[RecordingRow]:
    """Recordings, oldest first, that this file is a part of."""
    query = (
        select(RecordingRow)
        .join(FileRow, FileRow.recording_id == RecordingRow.id)
        .where(FileRow.sha256 == sha256, RecordingRow.state != State.MERGED)
        .order_by(RecordingRow.uploaded_at)
    )
    return session.scalars(query if ending is None else query.where(FileRow.ending == ending)).unique().all()


def _orphans(session: Session, uploader: str, names: Sequence[str]) -> dict[str, RecordingRow]:
    """Signal files of the uploader that wait for a header, by name; the latest of each name."""
    rows = session.execute(
        select(FileRow.name, RecordingRow)
        .join(RecordingRow, RecordingRow.id == FileRow.recording_id)
        .where(RecordingRow.uploader == uploader, RecordingRow.state == State.INCOMPLETE)
        .where(FileRow.place == 0, FileRow.ending.in_(SIGNAL_ENDINGS), FileRow.name.in_(names))
        .order_by(RecordingRow.uploaded_at)
    )
    return {name: row for name, row in rows}  # noqa: C416 (rows are not pairs to the type checker)


def files_of(session: Session, recording_id: str) -> Sequence[FileRow]:
    """The recording's files in their order."""
    return session.scalars(select(FileRow).where(FileRow.recording_id == recording_id).order_by(FileRow.place)).all()


def found(session: Session, recording_id: str) -> RecordingRow:
    """The recording of this id, or the one that its files became a part of."""
    row = session.get(RecordingRow, recording_id)
    while row is not None and row.merged_into:
        row = session.get(RecordingRow, row.merged_into)
    if row is None:
        raise Missing("expected the id of a recording, found no such recording")
    return row
