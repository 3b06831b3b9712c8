"""Feed of changes for event streams; every change is in the audit log, so the length of the log is the counter."""

import asyncio
import logging
import re
import time
from dataclasses import dataclass

import anyio.to_thread
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from ecgquorum.service.store import Store, audit, reviews
from ecgquorum.service.store.tables import AuditRow, RecordingRow

_INTERVAL_S = 0.5
_MAX_CHANGES = 500
_ID = re.compile(r"[0-9a-f]{32}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Change:
    """The number of the last change, and the ids of the recordings that changed; None: too many to name."""

    number: int
    ids: tuple[str, ...] | None


class ChangeFeed:
    """The last changes; the database is queried at most twice a second for all listeners.

    n_streams: number of open event streams
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._number, self._read_at = 0, 0.0
        self._since: dict[int, Change] = {}
        self.stopping = asyncio.Event()
        self.n_streams = 0

    async def since(self, number: int) -> Change:
        """What changed after this number; claims whose time is over end here."""
        async with self._lock:
            try:
                if time.monotonic() - self._read_at > _INTERVAL_S:
                    self._read_at = time.monotonic()
                    self._number = await anyio.to_thread.run_sync(self._read_number)
                    self._since.clear()
                if number not in self._since:
                    self._since[number] = await anyio.to_thread.run_sync(self._read_changes, number)
            except SQLAlchemyError as error:  # the stream waits until the database is back
                _log.debug("the change feed could not read the database: %s", error)
                return Change(number, ())
            return self._since[number]

    def _read_number(self) -> int:
        now = self._store.now()
        with self._store.read_session() as session:
            number = audit.head(session)[0]
            overdue = session.scalars(select(RecordingRow.id).where(RecordingRow.reader_until < now).limit(1)).first()
        if overdue is None:
            return number
        with self._store.write_session() as session:
            reviews.expire_claims(session, now)
            return audit.head(session)[0]

    def _read_changes(self, number: int) -> Change:
        if self._number <= number:
            return Change(number, ())
        if number < 0 or self._number - number > _MAX_CHANGES:
            return Change(self._number, None)
        between = AuditRow.number > number, AuditRow.number <= self._number
        with self._store.read_session() as session:
            subjects = session.scalars(select(AuditRow.subject).where(*between)).all()
        return Change(self._number, tuple(dict.fromkeys(filter(_ID.fullmatch, subjects))))
