"""The audit log: who did what, when; every entry holds the hash of the one before.

Whoever changes, removes or reorders an entry breaks the chain. Whoever cuts off its end leaves the head behind; whoever
mends that too is found by a head that was noted elsewhere (`noted`).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.store.tables import AuditRow, HeadRow

BEGINNING = "0" * 64
_BATCH = 1000


@dataclass(frozen=True)
class Verified:
    """How far the log holds: entries that do, the last one's hash, and what is wrong behind them."""

    n_entries: int
    head: str
    problem: str = ""


def append(
    session: Session, at: str, actor: str, action: str, subject: str = "", details: Mapping[str, Any] | None = None
) -> AuditRow:
    """Add an entry, in the transaction that does what it tells."""
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
    session.flush()
    return row


def entry_sha256(row: AuditRow) -> str:
    """The hash of all that the entry says."""
    content = [row.number, row.at, row.actor, row.action, row.subject, row.details, row.previous_sha256]
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def head(session: Session) -> tuple[int, str]:
    """How many entries there are, and the last one's hash."""
    row = session.get_one(HeadRow, 1, populate_existing=True)
    return row.number, row.sha256


def entries(session: Session, after: int = 0) -> Iterator[AuditRow]:
    """Every entry behind number `after`, in order."""
    while rows := session.scalars(
        select(AuditRow).where(AuditRow.number > after).order_by(AuditRow.number).limit(_BATCH)
    ).all():
        yield from rows
        after = rows[-1].number
        session.expunge_all()


def verified(session: Session, noted: tuple[int, str] | None = None) -> Verified:
    """Follow the chain from its beginning; stops at the first entry that does not hold.

    noted: number and hash of an entry, written down earlier, that must still be there
    """
    number, last = 0, BEGINNING
    for row in entries(session):
        if row.number != number + 1:
            return Verified(number, last, f"entry {number + 1} is missing")
        if row.previous_sha256 != last:
            return Verified(number, last, f"entry {row.number} does not follow the one before it")
        if row.sha256 != entry_sha256(row):
            return Verified(number, last, f"entry {row.number} has been changed")
        if noted and noted[0] == row.number and noted[1] != row.sha256:
            return Verified(number, last, f"entry {row.number} is another than the one that was noted")
        number, last = row.number, row.sha256
    if (number, last) != head(session):
        return Verified(number, last, f"the log ends at entry {number}, its head says {head(session)[0]}")
    if noted and noted[0] > number:
        return Verified(number, last, f"the log ends at entry {number}, entry {noted[0]} was noted")
    return Verified(number, last)


def latest(session: Session, before: int, limit: int) -> Sequence[AuditRow]:
    """The entries in front of number `before`, the latest first."""
    query = select(AuditRow).where(AuditRow.number < before).order_by(AuditRow.number.desc())
    return session.scalars(query.limit(limit)).all()
