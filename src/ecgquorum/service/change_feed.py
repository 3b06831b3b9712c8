"""Feed of changes for event streams; every change is in the audit log, so the length of the log is the counter."""

import asyncio
import time

import anyio.to_thread

from ecgquorum.service.store import Store, audit

_INTERVAL_S = 0.5


class ChangeFeed:
    """The number of the last change; the database is queried at most twice a second for all listeners."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._number, self._read_at = 0, 0.0
        self.stopping = asyncio.Event()

    async def number(self) -> int:
        """The number of the last change; it grows with every change."""
        async with self._lock:
            if time.monotonic() - self._read_at > _INTERVAL_S:
                self._number = await anyio.to_thread.run_sync(self._read_number)
                self._read_at = time.monotonic()
            return self._number

    def _read_number(self) -> int:
        with self._store.read_session() as session:
            return audit.head(session)[0]
