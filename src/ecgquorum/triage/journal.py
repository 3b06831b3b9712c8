"""The results of a triage so far, in a database that survives being killed at any moment.

Recordings are classified in groups, and a group is written as one transaction: a killed run repeats its last group. The
database also keeps memory use constant, however many recordings there are.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ecgquorum.ensemble.result import Result
from ecgquorum.errors import TriageError
from ecgquorum.preprocessing.prepare import NO_PREVIEW, TracePreview

FORMAT = 3

_TABLES = """
CREATE TABLE IF NOT EXISTS about (facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS results (
    source TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    decision TEXT NOT NULL,
    quality TEXT NOT NULL,
    risk REAL,
    result TEXT NOT NULL,
    preview TEXT NOT NULL
);
"""
_MOST_URGENT_FIRST = """
SELECT result, stamp, preview, decision FROM results
ORDER BY CASE decision WHEN 'deferred' THEN 0 WHEN 'certain' THEN 1 ELSE 2 END, risk DESC, source
"""
_WITHIN_BUDGET = """
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY quality ORDER BY risk DESC, source) AS rank FROM results
)
SELECT
    result,
    stamp,
    preview,
    CASE WHEN quality <> 'usable' THEN decision WHEN rank <= :n THEN 'deferred' ELSE 'certain' END AS chosen
FROM ranked
ORDER BY CASE chosen WHEN 'deferred' THEN 0 WHEN 'certain' THEN 1 ELSE 2 END, risk DESC, source
"""


@dataclass(frozen=True)
class JournalEntry:
    """A result, the stamp of its files when they were read, and a preview of the signal for the page."""

    result: Result
    stamp: str = ""
    preview: TracePreview = NO_PREVIEW


class Journal:
    """The database of results; `about` holds what all of them were computed with.

    n_added: results added since it was opened
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.n_added = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = json.dumps(dict(about) | {"format": FORMAT}, sort_keys=True)
        with self._translate_errors():
            self._database = sqlite3.connect(path)
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(_TABLES)
            with self._database:
                found = self._database.execute("SELECT facts FROM about").fetchone()
                if found is None:
                    self._database.execute("INSERT INTO about VALUES (?)", (facts,))
        if found is not None and found[0] != facts:
            self.close()
            raise TriageError(
                f"{path.parent}: holds results of another model, other options or another version; choose another --out"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def __len__(self) -> int:
        return int(self._value("SELECT count(*) FROM results"))

    def has(self, source: str, stamp: str) -> bool:
        """Whether there is a result for the recording, and its files have not changed since."""
        query = "SELECT EXISTS (SELECT 1 FROM results WHERE source = ? AND stamp = ?)"
        return bool(self._value(query, source, stamp))

    def add(self, entries: Sequence[JournalEntry]) -> None:
        """Add a group of results; they are on disk when this returns."""
        values = [
            (
                entry.result.source,
                entry.stamp,
                entry.result.decision,
                str(entry.result.quality.severity),
                entry.result.risk,
                json.dumps(entry.result.to_json(), ensure_ascii=False),
                json.dumps(asdict(entry.preview)),
            )
            for entry in entries
        ]
        with self._translate_errors(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        self.n_added += len(entries)

    def entries(self, budget: float | None = None) -> Iterator[JournalEntry]:
        """Every result: deferred ones first, the highest risk at the top; unreadable ones last.

        budget: defer the highest risks, so that at most this share of all is deferred, instead of what was decided one
                by one; those of doubtful quality are deferred in any case, and count
        """
        query, values = _MOST_URGENT_FIRST, {}
        if budget is not None:
            n_doubtful = self._value(
                "SELECT count(*) FROM results WHERE decision = 'deferred' AND quality = 'doubtful'"
            )
            query, values = _WITHIN_BUDGET, {"n": max(0, int(budget * len(self) + 1e-9) - int(n_doubtful))}
        with self._translate_errors():
            for plain, stamp, preview, decision in self._database.execute(query, values):
                result = Result.from_json(json.loads(plain))
                if budget is not None and str(result.quality.severity) == "usable":
                    deferred = decision == "deferred"
                    result = result.with_decision(
                        decision, f"among the {budget:.0%} with the highest risk" if deferred else ""
                    )
                shown = json.loads(preview)
                yield JournalEntry(result, stamp, TracePreview(tuple(shown["microvolts"]), shown["seconds"]))

    def _value(self, query: str, *values: str) -> Any:
        with self._translate_errors():
            return self._database.execute(query, values).fetchone()[0]

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise TriageError(
                f"{self.path}: expected the journal of an earlier triage, found: {error}; choose another --out"
            ) from error
