"""The audit log: who did what and when; every entry holds the hash of the one before.

Changing, removing or reordering an entry breaks the chain. Truncating the log contradicts its stored head; if the head
is changed as well, an entry that was saved elsewhere (`expected`) shows it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.store.tables import AuditRow, HeadRow

BEGINNING = "0" * 64
CHECKED_AT_ONCE = 4000
"""Entries that a page checks; checking them takes about a tenth of a second."""
_BATCH = 1000
WORKER, DESK, UNKNOWN, COMMAND_LINE = NO_PERSONS = "worker", "desk", "unknown", "command line"
"""Actors that are no persons; `UNKNOWN`: whose token was wrong."""


@dataclass(frozen=True)
class LogCheck:
    """Result of a check: number of valid entries, hash of the last one, and the first problem after them."""

    n_entries: int
    head: str
    problem: str = ""


def append(
    session: Session, at: str, actor: str, action: str, subject: str = "", details: Mapping[str, Any] | None = None
) -> AuditRow:
    """Append an entry, in the transaction of the change that it describes."""
    head = session.get_one(HeadRow, 1)
    row = AuditRow(
        number=head.number + 1,
        at=at,
        actor=actor,
        action=action,
        subject=subject,
        details=dict(details or {}),
        previous_sha256=head.sha256,
        sha256="",
    )
    row.sha256 = entry_sha256(row)
    head.number, head.sha256 = row.number, row.sha256
    session.add(row)
    return row


def entry_sha256(row: AuditRow) -> str:
    """Hash of all fields of the entry."""
    content = [row.number, row.at, row.actor, row.action, row.subject, row.details, row.previous_sha256]
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def document_sha256(document: Mapping[str, Any]) -> str:
    """Hash of a stored result, as its entry has it."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def head(session: Session) -> tuple[int, str]:
    """Number of entries, and hash of the last one."""
    row = session.get_one(HeadRow, 1, populate_existing=True)
    return row.number, row.sha256


def entries(session: Session, after: int = 0) -> Iterator[AuditRow]:
    """All entries after number `after`, in order."""
    while rows := session.scalars(
        select(AuditRow).where(AuditRow.number > after).order_by(AuditRow.number).limit(_BATCH)
    ).all():
        yield from rows
        after = rows[-1].number
        session.expunge_all()


def verify_log(
    session: Session,
    expected: tuple[int, str] | None = None,
    start: tuple[int, str] = (0, BEGINNING),
    most: int | None = None,
) -> LogCheck:
    """Verify the hash chain; stops at the first invalid entry.

    expected: number and hash of an entry that was saved elsewhere
    start:    number and hash of an entry that was verified before; entries up to it are not read
    most:     stop after so many entries
    """
    number, last = start
    for row in entries(session, after=number):
        if number - start[0] == most:
            return LogCheck(number, last)
        if row.number != number + 1:
            return LogCheck(number, last, f"entry {number + 1} is missing")
        if row.previous_sha256 != last:
            return LogCheck(number, last, f"entry {row.number} does not follow the one before it")
        if row.sha256 != entry_sha256(row):
            return LogCheck(number, last, f"entry {row.number} has been changed")
        if expected and expected[0] == row.number and expected[1] != row.sha256:
            return LogCheck(number, last, f"entry {row.number} differs from the expected one")
        number, last = row.number, row.sha256
    if (number, last) != head(session):
        return LogCheck(number, last, f"the log ends at entry {number}, but its head says {head(session)[0]}")
    if expected and expected[0] > number:
        return LogCheck(number, last, f"the log ends at entry {number}, but entry {expected[0]} was expected")
    return LogCheck(number, last)


class GrowingCheck:
    """A check of the log that reads only what is new; the first one reads everything."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known = LogCheck(0, BEGINNING)

    def update(self, session: Session, most: int | None = None) -> LogCheck:
        """Check the entries since the last time, or `most` of them; a problem that was found stays."""
        with self._lock:
            if not self._known.problem:
                self._known = verify_log(session, start=(self._known.n_entries, self._known.head), most=most)
            return self._known


def latest(session: Session, before: int, limit: int) -> Sequence[AuditRow]:
    """Entries before number `before`, the latest first."""
    query = select(AuditRow).where(AuditRow.number < before).order_by(AuditRow.number.desc())
    return session.scalars(query.limit(limit)).all()
