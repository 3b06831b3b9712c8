"""The access log: one JSON line for each request, without queries and bodies, in a file that is rotated."""

import json
import logging
from collections import deque
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from ecgquorum.recordings.recording import one_line

_MAX_BYTES = 10 << 20
_N_FILES = 5
NAME = "access.log"
_log = logging.getLogger(__name__)


class _Handler(RotatingFileHandler):
    """A rotated file that only its owner can read; what cannot be written is reported once, not for each line."""

    is_failing = False

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).touch(mode=0o600)
        return super()._open()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; a rotation that fails, as on a full disk, loses it."""
        try:
            if self.shouldRollover(record):
                self.doRollover()
            self.stream = self.stream or self._open()
            self.stream.write(self.format(record) + self.terminator)
            self.stream.flush()
            self.is_failing = False
        except OSError as error:
            if not self.is_failing:
                _log.error("%s: lines are lost: %s", self.baseFilename, one_line(error))
            self.is_failing = True
            self._drop_stream()

    def _drop_stream(self) -> None:
        """Forget what is in the buffer of the file, so that no later line fails because of it."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


class AccessLog:
    """Who asked for what, from where, and with which status."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._path.touch(mode=0o600)
        self._handler = _Handler(
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
        """The last lines, the latest first; just after a rotation those of the file before as well."""
        found: list[dict[str, Any]] = []
        for path in (self._path, self._path.with_name(f"{NAME}.1")):
            if len(found) < limit and path.is_file():
                with path.open(encoding="utf-8", errors="replace") as file:
                    lines = deque(file, maxlen=limit - len(found))
                found += filter(None, map(_parse_line, reversed(lines)))
        return found

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


def _parse_line(line: str) -> dict[str, Any] | None:
    """What a line says; None for one that a full disk cut, which the next one may follow without a break."""
    with suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict) and line.endswith("\n"):
            return found
    return None
