"""Erase and rename recordings. An erased recording leaves an entry in the audit log, without its name and content."""

from collections.abc import Sequence

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import AuditRow, FileRow, RecordingRow, ResultRow, SenderRow, VerdictRow
from ecgquorum.service.store.verification import ERASED

_OWNED = (VerdictRow, ResultRow, FileRow, SenderRow)


def erase_recording(session: Session, row: RecordingRow, at: str, admin: str, reason: str) -> list[str]:
    """Remove a recording with its results and verdicts; returns the hashes of its files, which may be removed now."""
    merged = _merged_recordings(session, row.id)
    ids = [row.id, *merged]
    hashes = list(
        session.scalars(
            select(FileRow.sha256).where(FileRow.recording_id.in_(ids), FileRow.sha256.is_not(None)).distinct()
        )
    )
    for table in _OWNED:
        session.execute(delete(table).where(table.recording_id.in_(ids)))
    session.execute(delete(RecordingRow).where(RecordingRow.id.in_(ids)))
    details = {"reason": reason, "files": hashes, "merged": merged}
    audit.append(session, at, admin, ERASED, row.id, details)
    return [one for one in hashes if one]


def _merged_recordings(session: Session, recording_id: str) -> list[str]:
    """Ids of all recordings that became a part of this one, also by way of others."""
    found: list[str] = []
    last = [recording_id]
    while last := list(session.scalars(select(RecordingRow.id).where(RecordingRow.merged_into.in_(last)))):
        found += last
    return found


def unused_files(session: Session, hashes: Sequence[str]) -> list[str]:
    """Those of the files that no recording has; call it with the write lock, and remove them before it is released."""
    used = set(session.scalars(select(FileRow.sha256).where(FileRow.sha256.in_(hashes))))
    return [one for one in hashes if one not in used]


def erased_files(session: Session) -> list[str]:
    """Hashes of the files of all erased recordings."""
    rows = session.scalars(select(AuditRow.details).where(AuditRow.action == ERASED))
    return [str(sha256) for details in rows for sha256 in details["files"]]


def erased_ids(session: Session) -> list[str]:
    """Ids of all erased recordings."""
    return list(session.scalars(select(AuditRow.subject).where(AuditRow.action == ERASED)))


def rename_recording(session: Session, row: RecordingRow, at: str, admin: str, name: str) -> None:
    """Change the displayed name, also for others who sent it. No name is in the log: names may identify patients."""
    row.name = name
    session.execute(update(SenderRow).where(SenderRow.recording_id == row.id).values(name=name))
    audit.append(session, at, admin, "renamed", row.id)


def stored_bytes(session: Session, uploader: str = "") -> int:
    """Size of all stored files, or of those of one uploader."""
    query = select(func.coalesce(func.sum(FileRow.n_bytes), 0))
    if uploader:
        owned = select(RecordingRow.id).where(RecordingRow.uploader == uploader)
        query = query.where(FileRow.recording_id.in_(owned))
    return int(session.scalar(query) or 0)
