"""Throttle of failed sign-ins, by address."""

import time
from collections import deque
from threading import Lock

MAX_FAILURES = 10
WINDOW_S = 60.0
_MAX_ADDRESSES = 10_000


class Throttle:
    """Counts failures of each address in the last minute."""

    def __init__(self, limit: int = MAX_FAILURES, window_s: float = WINDOW_S) -> None:
        self._limit, self._window_s = limit, window_s
        self._failures: dict[str, deque[float]] = {}
        self._lock = Lock()

    def wait_s(self, address: str) -> float:
        """Seconds until this address may try again; 0 if it may now."""
        with self._lock:
            failures = self._recent(address)
            return self._window_s - (time.monotonic() - failures[0]) if len(failures) >= self._limit else 0.0

    def fail(self, address: str) -> None:
        """Count a failure."""
        with self._lock:
            if len(self._failures) >= _MAX_ADDRESSES:
                self._failures.pop(next(iter(self._failures)))
            self._failures.setdefault(address, deque(maxlen=self._limit)).append(time.monotonic())

    def _recent(self, address: str) -> deque[float]:
        failures = self._failures.get(address, deque())
        while failures and time.monotonic() - failures[0] > self._window_s:
            failures.popleft()
        return failures
