"""The access log: one JSON line for each request, without queries and bodies, in a file that is rotated."""

import json
import logging
from collections import deque
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

_MAX_BYTES = 10 << 20
_N_FILES = 5
NAME = "access.log"


class AccessLog:
    """Who asked for what, from where, and with which status."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._path.touch(mode=0o600)
        self._handler = RotatingFileHandler(
            self._path,
            maxBytes=_MAX_BYTES,
            backupCount=_N_FILES,
            encoding="utf-8",
            errors="backslashreplace",
            delay=True,
        )

    def write(self, **values: Any) -> None:
        """Append a line; a full disk loses lines, never requests."""
        line = json.dumps(values)
        record = logging.LogRecord("access", logging.INFO, "", 0, line, None, None)
        self._handler.handle(record)

    def latest(self, limit: int) -> list[dict[str, Any]]:
        """The last lines, the latest first."""
        with self._path.open(encoding="utf-8", errors="replace") as file:
            lines = deque(file, maxlen=limit)
        return [json.loads(line) for line in reversed(lines) if line.endswith("}\n")]

    def close(self) -> None:
        """Close the file."""
        self._handler.close()
