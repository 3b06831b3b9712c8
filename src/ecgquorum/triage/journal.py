"""What triage has answered so far, one row a recording, safe against being killed at any moment.

Recordings are answered in groups, and a group is written as one transaction: a killed run does its last group again, as
a whole and with the same result. A database keeps memory flat, however many recordings there are.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from ecgquorum.errors import TriageError
from ecgquorum.recordings.discovery import RecordingPath

Row = dict[str, Any]

_TABLES = """
CREATE TABLE IF NOT EXISTS about (facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    source TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    decision TEXT NOT NULL,
    quality TEXT NOT NULL,
    uncertainty REAL,
    answer TEXT NOT NULL
);
"""
_MOST_URGENT_FIRST = """
SELECT answer FROM answers
ORDER BY CASE decision WHEN 'deferred' THEN 0 WHEN 'certain' THEN 1 ELSE 2 END, uncertainty DESC, source
"""
_MOST_URGENT_FIRST_WITHIN = """
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY quality ORDER BY uncertainty DESC, source) AS place FROM answers
)
SELECT
    answer,
    CASE WHEN quality <> 'usable' THEN decision WHEN place <= :n THEN 'deferred' ELSE 'certain' END AS rationed
FROM ranked
ORDER BY CASE rationed WHEN 'deferred' THEN 0 WHEN 'certain' THEN 1 ELSE 2 END, uncertainty DESC, source
"""


class Journal:
    """The file of answers; `about` says what every one of them was computed with.

    n_added: how many were added since it was opened
    """

    def __init__(self, path: Path, about: Row) -> None:
        self.path = path
        self.n_added = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._telling():
            self._database = sqlite3.connect(path)
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(_TABLES)
            with self._database:
                found = self._database.execute("SELECT facts FROM about").fetchone()
                facts = json.dumps(about, sort_keys=True)
                if found is None:
                    self._database.execute("INSERT INTO about VALUES (?)", (facts,))
        if found is not None and found[0] != facts:
            self.close()
            raise TriageError(
                f"{path.parent}: expected answers of the same model and options, found others; choose another --out"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __len__(self) -> int:
        return int(self._one("SELECT count(*) FROM answers"))

    def has(self, place: RecordingPath) -> bool:
        """Whether the recording is answered, and its files are still those that were read."""
        return bool(
            self._one("SELECT EXISTS (SELECT 1 FROM answers WHERE source = ? AND stamp = ?)", str(place), place.stamp)
        )

    def add(self, rows: Sequence[Row]) -> None:
        """One group of answers; on the disk when this returns."""
        columns = ("source", "stamp", "decision", "quality", "uncertainty")
        values = [(*(row[name] for name in columns), json.dumps(row, ensure_ascii=False)) for row in rows]
        with self._telling(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", values)
        self.n_added += len(rows)

    def rows(self) -> Iterator[Row]:
        """Every answer: what goes to people first, the most uncertain at the top; what cannot be read last."""
        with self._telling():
            for (answer,) in self._database.execute(_MOST_URGENT_FIRST):
                yield json.loads(answer)

    def rationed_rows(self, share: float) -> Iterator[Row]:
        """Every answer, where the most uncertain of all go to people, and no more than this share of them.

        Those of doubtful quality go whatever the share is, and count.
        """
        doubtful = self._one("SELECT count(*) FROM answers WHERE decision = 'deferred' AND quality = 'doubtful'")
        n_deferred = max(0, int(share * len(self) + 1e-9) - int(doubtful))
        with self._telling():
            for answer, decision in self._database.execute(_MOST_URGENT_FIRST_WITHIN, {"n": n_deferred}):
                row: Row = json.loads(answer)
                if row["quality"] == "usable":
                    chosen = decision == "deferred"
                    row |= {"decision": decision, "reason": f"among the {share:.0%} most uncertain" if chosen else ""}
                yield row

    def _one(self, query: str, *values: str) -> Any:
        with self._telling():
            return self._database.execute(query, values).fetchone()[0]

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise TriageError(
                f"{self.path}: expected the answers of an earlier triage, found: {error}; choose another --out"
            ) from error
