"""Reviews: a case is one reader's for a while; the first verdict comes before the ensemble's answer is shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.http_errors import Conflict, Unprocessable
from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import RecordingRow, ResultRow, State, VerdictRow

FIRST, FINAL = "first", "final"


@dataclass(frozen=True)
class Reviewer:
    """Who reads, when, for how long a case is theirs, and whether the ensemble's answer stays hidden at first."""

    name: str
    at: str
    until: str
    blind_first: bool


def is_open(row: RecordingRow) -> bool:
    """Whether people are to read it."""
    return row.state == State.DEFERRED or (row.state == State.CERTAIN and row.audited)


def holder(row: RecordingRow, at: str) -> str | None:
    """Whose the case is now."""
    return row.reader if row.reader_until and row.reader_until >= at else None


def claim(session: Session, row: RecordingRow, reviewer: Reviewer) -> None:
    """Lock the case for the reviewer, or for a while longer."""
    if not is_open(row):
        raise Conflict(f"expected a case that is open, found it {shown_state(row)}")
    other = holder(row, reviewer.at)
    if other not in (None, reviewer.name):
        raise Conflict(f"expected a case that nobody reads, found it claimed by {other}")
    row.reader, row.reader_until = reviewer.name, reviewer.until
    if other is None:
        audit.append(session, reviewer.at, reviewer.name, "claimed", row.id)


def release(session: Session, row: RecordingRow, reviewer: Reviewer) -> None:
    """Give the case back."""
    if holder(row, reviewer.at) == reviewer.name:
        row.reader = row.reader_until = None
        audit.append(session, reviewer.at, reviewer.name, "released", row.id)


def may_see_answer(session: Session, row: RecordingRow, name: str, blind_first: bool) -> bool:
    """Whether the ensemble's answer may be shown to this person."""
    if not is_open(row) or not blind_first:
        return True
    return any(verdict.reader == name for verdict in verdicts_of(session, row.id))


def judge(session: Session, row: RecordingRow, reviewer: Reviewer, label: str, classes: Sequence[str]) -> str:
    """Store a verdict of whoever holds the case; gives its stage. The final one closes it.

    Blind first, a reader's first verdict is only followed by the ensemble's answer; the next is final.
    """
    if label not in classes:
        raise Unprocessable(f"expected a class of {', '.join(classes)}, found {label!r}")
    if not is_open(row):
        raise Conflict(f"expected a case that is open, found it {shown_state(row)}")
    if holder(row, reviewer.at) != reviewer.name:
        raise Conflict("expected a case that you have claimed, found that you have not, or that your claim has ended")
    has_first = any(verdict.reader == reviewer.name for verdict in verdicts_of(session, row.id))
    stage = FIRST if reviewer.blind_first and not has_first else FINAL
    if not reviewer.blind_first and not has_first:
        _add(session, row, reviewer, label, FIRST, was_blind=False)
    _add(session, row, reviewer, label, stage, was_blind=stage == FIRST)
    if stage == FINAL:
        agrees = label == result_of(session, row.id).label
        row.state, row.closed_at = State.CONFIRMED if agrees else State.AMENDED, reviewer.at
        row.reader = row.reader_until = None
    else:
        row.reader_until = reviewer.until
    audit.append(session, reviewer.at, reviewer.name, f"{stage} verdict", row.id, {"label": label, "state": row.state})
    return stage


def _add(session: Session, row: RecordingRow, reviewer: Reviewer, label: str, stage: str, was_blind: bool) -> None:
    session.add(
        VerdictRow(
            recording_id=row.id, reader=reviewer.name, stage=stage, label=label, was_blind=was_blind, at=reviewer.at
        )
    )
    session.flush()


def result_of(session: Session, recording_id: str) -> ResultRow:
    """The latest answer about a recording that has one."""
    query = select(ResultRow).where(ResultRow.recording_id == recording_id).order_by(ResultRow.id.desc())
    return session.scalars(query.limit(1)).one()


def verdicts_of(session: Session, recording_id: str) -> Sequence[VerdictRow]:
    """Every verdict about a recording, in order."""
    return session.scalars(
        select(VerdictRow).where(VerdictRow.recording_id == recording_id).order_by(VerdictRow.id)
    ).all()


def shown_state(row: RecordingRow) -> str:
    """The state that people see: an open case does not tell whether the ensemble was sure of it."""
    return "open" if is_open(row) else row.state
