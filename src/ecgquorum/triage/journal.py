"""The results of a triage so far, in a database that survives being killed at any moment.

Recordings are classified in groups, and a group is written as one transaction: a killed run repeats its last group. The
database also keeps memory use constant, however many recordings there are.
"""

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ecgquorum._internal.atomic import check_disk_full
from ecgquorum.ensemble.result import BY_POLICY, DEFERRED, Result
from ecgquorum.errors import TriageError
from ecgquorum.preprocessing.prepare import NO_PREVIEW, TracePreview
from ecgquorum.recordings.discovery import ReadFailure

FORMAT = 4

_TABLES = """
CREATE TABLE IF NOT EXISTS about (facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS results (
    source TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    id TEXT NOT NULL,
    decision TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    urgency INTEGER,
    risk REAL,
    result TEXT NOT NULL,
    preview TEXT NOT NULL
);
"""
_IN_ORDER = """
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY decided_by ORDER BY risk DESC, source) AS place FROM results
), chosen AS (
    SELECT *, CASE
        WHEN :n IS NULL OR decided_by <> 'policy' THEN decision
        WHEN place <= :n THEN 'deferred'
        ELSE 'certain'
    END AS choice FROM ranked
)
SELECT result, stamp, preview, choice FROM chosen
ORDER BY
    CASE choice WHEN 'deferred' THEN 0 WHEN 'certain' THEN 1 WHEN 'unreadable' THEN 2 ELSE 3 END,
    urgency IS NULL, urgency, risk DESC, source
"""
_N_USABLE = "SELECT count(*) FROM results WHERE decision IN ('deferred', 'certain') AND decided_by <> 'quality'"
_N_BY_RULES = "SELECT count(*) FROM results WHERE decision = 'deferred' AND decided_by NOT IN ('quality', 'policy')"
_REPEATED = "SELECT id, source FROM results WHERE id IN (SELECT id FROM results GROUP BY id HAVING count(*) > 1)"


@dataclass(frozen=True)
class JournalEntry:
    """A result, the stamp of its files when they were read, and a preview of the signal for the page.

    stamp: empty for what discovery found without reading: a path that does not exist, a file that is no recording
    """

    result: Result
    stamp: str = ""
    preview: TracePreview = NO_PREVIEW


def read_facts(path: Path) -> dict[str, Any]:
    """What all results of a journal were computed with, as `Journal` was given it; changes nothing."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            found = json.loads(database.execute("SELECT facts FROM about").fetchone()[0])
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise TriageError(f"{path}: expected the journal of a triage, found: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise TriageError(f"{path}: the journal is of another version; triage again into another folder")
    return found


class Journal:
    """The database of results; `about` holds what all of them were computed with.

    n_added:   results added or changed since it was opened
    failures:  given paths that do not exist or cannot be read, of this call
    n_ignored: files that were ignored on request, of this call
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.n_added = 0
        self.failures: list[ReadFailure] = []
        self.n_ignored = 0
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

    def is_read(self, source: str) -> bool:
        """Whether there is a result of reading the file, or of trying to."""
        return bool(self._value("SELECT EXISTS (SELECT 1 FROM results WHERE source = ? AND stamp <> '')", source))

    def list_failures(self) -> set[str]:
        """Every recording that could not be read; those of unreadable quality were."""
        query = "SELECT source, result FROM results WHERE decision = 'unreadable' AND stamp <> ''"
        with self._translate_errors():
            rows = [(source, json.loads(plain)) for source, plain in self._database.execute(query)]
        return {source for source, plain in rows if plain["seconds"] is None}

    def add(self, entries: Sequence[JournalEntry]) -> None:
        """Add a group of results; they are on disk when this returns."""
        with self._translate_errors(), self._database:
            self._insert(entries)
        self.n_added += len(entries)

    def replace_unread(self, results: Sequence[Result]) -> list[Result]:
        """Replace every result without a stamp: what an earlier call did not find or take may have changed.

        Returns those that are new or have changed.
        """
        with self._translate_errors(), self._database:
            rows = self._database.execute("SELECT source, result FROM results WHERE stamp = ''").fetchall()
            before = {source: Result.from_json(json.loads(plain)) for source, plain in rows}
            self._database.execute("DELETE FROM results WHERE stamp = ''")
            self._insert([JournalEntry(result) for result in results])
        changed = [result for result in results if before.get(result.source) != result]
        self.n_added += len(changed) + len(before.keys() - {result.source for result in results})
        return changed

    def _insert(self, entries: Sequence[JournalEntry]) -> None:
        values = [
            (
                entry.result.source,
                entry.stamp,
                entry.result.id,
                entry.result.decision,
                entry.result.decided_by,
                entry.result.urgency,
                entry.result.risk,
                json.dumps(entry.result.to_json(), ensure_ascii=False),
                json.dumps(vars(entry.preview)),
            )
            for entry in entries
        ]
        self._database.executemany("INSERT OR REPLACE INTO results VALUES (?,?,?,?,?,?,?,?,?)", values)

    def entries(self, budget: float | None = None) -> Iterator[JournalEntry]:
        """Every result, with an id of its own: deferred ones first, then certain, unreadable and skipped ones.

        Among those, urgent classes come first, then the highest risk.

        budget: defer the highest risks, so that at most this share of the usable recordings is deferred, instead of
                what a policy decided; those that the urgency or the windows defer count, those of doubtful quality do
                not
        """
        names, n_open = self._unique_ids(), None
        if budget is not None:
            n_open = max(0, int(budget * self._value(_N_USABLE) + 1e-9) - self._value(_N_BY_RULES))
        with self._translate_errors():
            for plain, stamp, preview, decision in self._database.execute(_IN_ORDER, {"n": n_open}):
                result = Result.from_json(json.loads(plain))
                if budget is not None and result.decided_by == BY_POLICY:
                    why = f"among the {budget:.0%} with the highest risk" if decision == DEFERRED else ""
                    result = result.with_decision(decision, why)
                result = replace(result, id=names.get(result.source, result.id))
                yield JournalEntry(result, stamp, TracePreview(**json.loads(preview)))

    def _unique_ids(self) -> dict[str, str]:
        """Source -> path below the folder that the recordings of the same id share, for ids that are not unique."""
        sources: dict[str, list[str]] = defaultdict(list)
        with self._translate_errors():
            for record, source in self._database.execute(_REPEATED):
                sources[record].append(source)
        places = {one: Path(one).absolute() for found in sources.values() for one in found}  # a failure is as given
        shared = [(os.path.commonpath([places[one].parent for one in found]), found) for found in sources.values()]
        return {source: os.path.relpath(places[source], folder) for folder, found in shared for source in found}

    def _value(self, query: str, *values: str) -> Any:
        with self._translate_errors():
            return self._database.execute(query, values).fetchone()[0]

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            check_disk_full(self.path, error)
            raise TriageError(
                f"{self.path}: expected the journal of an earlier triage, found: {error}; choose another --out"
            ) from error
