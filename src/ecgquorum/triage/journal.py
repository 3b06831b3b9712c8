"""What triage has answered so far, one line a recording, safe against being killed at any moment.

Recordings are answered in groups. A group's lines are appended together and synced before the next group begins; a
line of `{"group": n}` closes it. What a killed run left of an open group is cut off, so that the group is done again,
as a whole and with the same result.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ecgquorum.errors import TriageError

Row = dict[str, Any]


class Journal:
    """The file, and which recordings it already holds; `about` says what every line was computed with."""

    def __init__(self, path: Path, about: Row) -> None:
        self.path = path
        self.known: set[str] = set()
        self._groups = 0
        if path.is_file():
            self._resume(about)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append([{"about": about}])

    def _resume(self, about: Row) -> None:
        pending: list[str] = []
        with self.path.open("rb") as file:
            first = _parsed(file.readline())
            if first != {"about": about}:
                raise TriageError(
                    f"{self.path.parent}: expected answers of the same model and options, found others; "
                    "choose another --out"
                )
            end = file.tell()
            for line in file:
                row = _parsed(line)
                if row is None:
                    break
                if "group" in row:
                    self.known.update(pending)
                    self._groups, pending = row["group"], []
                    end = file.tell()
                else:
                    pending.append(row["source"])
        with self.path.open("r+b") as file:
            file.truncate(end)

    def add(self, rows: Sequence[Row]) -> None:
        """One group of answers."""
        self._groups += 1
        self._append([*rows, {"group": self._groups}])
        self.known.update(row["source"] for row in rows)

    def _append(self, rows: Sequence[Row]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        with self.path.open("ab") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def rows(self) -> Iterator[Row]:
        """Every answer, as it was written."""
        with self.path.open("rb") as file:
            for line in file:
                row = _parsed(line)
                if row is not None and "source" in row:
                    yield row


def _parsed(line: bytes) -> Row | None:
    """The line, if it was written to its end."""
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
