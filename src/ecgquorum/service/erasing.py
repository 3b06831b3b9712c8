"""Erase recordings with their files; what a crash leaves behind is removed at the next start."""

from collections.abc import Sequence

from ecgquorum.service.desk import Desk
from ecgquorum.service.store import erasure
from ecgquorum.service.store.tables import RecordingRow


def erase(desk: Desk, ids: Sequence[str], admin: str, reason: str, state: str | None = None) -> int:
    """Erase recordings: first from the database, then from the disk; returns their number.

    state: only those that are still in it
    """
    hashes: list[str] = []
    erased: list[str] = []
    for one in ids:
        with desk.store.write_session() as session:
            row = session.get(RecordingRow, one)
            if row is not None and state in (None, row.state):
                hashes += erasure.erase_recording(session, row, desk.store.now(), admin, reason)
                erased.append(one)
    remove_orphans(desk, hashes, erased)
    return len(erased)


def finish_erasures(desk: Desk) -> None:
    """Remove files of erased recordings that are still there."""
    with desk.store.read_session() as session:
        hashes = [one for one in erasure.erased_files(session) if desk.files.path(one).exists()]
        ids = [one for one in erasure.erased_ids(session) if desk.files.trace_path(one).exists()]
    if hashes or ids:
        remove_orphans(desk, hashes, ids)


def remove_orphans(desk: Desk, hashes: Sequence[str], ids: Sequence[str] = ()) -> None:
    """Remove files that no recording has, and samples, under the write lock: an upload of the same bytes waits."""
    with desk.store.write_session() as session:
        for sha256 in erasure.unused_files(session, hashes):
            desk.files.path(sha256).unlink(missing_ok=True)
        for one in ids:
            desk.files.trace_path(one).unlink(missing_ok=True)
