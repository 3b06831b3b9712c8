"""Whether anything has changed: everything that does is in the audit log, so its length tells."""

import asyncio
import time

import anyio.to_thread

from ecgquorum.service.store import Store, audit

_FRESH_S = 0.5


class Changes:
    """The number of the last change, asked of the database at most twice a second however many ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._number, self._asked = 0, 0.0
        self.stopping = asyncio.Event()

    async def number(self) -> int:
        """It grows with every change."""
        async with self._lock:
            if time.monotonic() - self._asked > _FRESH_S:
                self._number = await anyio.to_thread.run_sync(self._read)
                self._asked = time.monotonic()
            return self._number

    def _read(self) -> int:
        with self._store.reading() as session:
            return audit.head(session)[0]
