"""Erase recordings with their files; what a crash leaves behind is removed at the next start."""

from collections.abc import Sequence

from ecgquorum.service.desk import Desk
from ecgquorum.service.store import erasure
from ecgquorum.service.store.tables import RecordingRow


def erase(desk: Desk, rows: Sequence[RecordingRow], admin: str, reason: str) -> int:
    """Erase recordings: first from the database, then from the disk; returns their number."""
    hashes: list[str] = []
    for row in rows:
        with desk.store.write_session() as session:
            current = session.get(RecordingRow, row.id)
            if current is not None:
                hashes += erasure.erase_recording(session, current, desk.store.now(), admin, reason)
    _remove(desk, hashes, [row.id for row in rows])
    return len(rows)


def finish_erasures(desk: Desk) -> None:
    """Remove files of erased recordings that are still there."""
    with desk.store.read_session() as session:
        hashes = [one for one in erasure.erased_files(session) if desk.files.path(one).exists()]
        ids = [one for one in erasure.erased_ids(session) if desk.files.trace_path(one).exists()]
    if hashes or ids:
        _remove(desk, hashes, ids)


def _remove(desk: Desk, hashes: Sequence[str], ids: Sequence[str]) -> None:
    """Remove files that no recording has, under the write lock: an upload of the same bytes waits for it."""
    with desk.store.write_session() as session:
        for sha256 in erasure.unused_files(session, hashes):
            desk.files.path(sha256).unlink(missing_ok=True)
        for one in ids:
            desk.files.trace_path(one).unlink(missing_ok=True)
