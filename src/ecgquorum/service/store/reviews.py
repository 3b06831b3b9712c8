"""Reviews: claim a case, give a first verdict before the ensemble's result is shown, then a final one."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.http_errors import ConflictError, UnprocessableError
from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import RecordingRow, ResultRow, State, VerdictRow

FIRST, FINAL = "first", "final"


@dataclass(frozen=True)
class Reviewer:
    """A reader, the current time, the end of a new claim, and whether the result is hidden at first."""

    name: str
    at: str
    until: str
    blind_first: bool


def is_open(row: RecordingRow) -> bool:
    """Whether the case waits for review."""
    return row.state == State.DEFERRED or (row.state == State.CERTAIN and row.audited)


def claim_holder(row: RecordingRow, at: str) -> str | None:
    """The reader whose claim is valid now."""
    return row.reader if row.reader_until and row.reader_until >= at else None


def claim_case(session: Session, row: RecordingRow, reviewer: Reviewer) -> None:
    """Claim the case, or extend the claim."""
    if not is_open(row):
        raise ConflictError(f"the case is not open: it is {visible_state(row)}")
    other = claim_holder(row, reviewer.at)
    if other not in (None, reviewer.name):
        raise ConflictError(f"the case is claimed by {other}")
    row.reader, row.reader_until = reviewer.name, reviewer.until
    if other is None:
        audit.append(session, reviewer.at, reviewer.name, "claimed", row.id)


def release_case(session: Session, row: RecordingRow, reviewer: Reviewer) -> None:
    """Release the case."""
    if claim_holder(row, reviewer.at) == reviewer.name:
        row.reader = row.reader_until = None
        audit.append(session, reviewer.at, reviewer.name, "released", row.id)


def may_see_answer(session: Session, row: RecordingRow, name: str, blind_first: bool) -> bool:
    """Whether this person may see the ensemble's result."""
    if not is_open(row) or not blind_first:
        return True
    return any(verdict.reader == name for verdict in list_verdicts(session, row.id))


def add_verdict(session: Session, row: RecordingRow, reviewer: Reviewer, label: str, classes: Sequence[str]) -> str:
    """Store a verdict of the reader who holds the case; returns its stage. The final verdict closes the case.

    With blind first, the first verdict only reveals the ensemble's result; the next one is final.
    """
    if label not in classes:
        raise UnprocessableError(f"{label!r} is not a class of the model; expected one of {', '.join(classes)}")
    if not is_open(row):
        raise ConflictError(f"the case is not open: it is {visible_state(row)}")
    if claim_holder(row, reviewer.at) != reviewer.name:
        raise ConflictError("you have not claimed this case, or your claim has expired")
    has_first = any(verdict.reader == reviewer.name for verdict in list_verdicts(session, row.id))
    stage = FIRST if reviewer.blind_first and not has_first else FINAL
    if not reviewer.blind_first and not has_first:
        _add(session, row, reviewer, label, FIRST, was_blind=False)
    _add(session, row, reviewer, label, stage, was_blind=stage == FIRST)
    if stage == FINAL:
        agrees = label == latest_result(session, row.id).label
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


def latest_result(session: Session, recording_id: str) -> ResultRow:
    """The latest result of a classified recording."""
    query = select(ResultRow).where(ResultRow.recording_id == recording_id).order_by(ResultRow.id.desc())
    return session.scalars(query.limit(1)).one()


def list_verdicts(session: Session, recording_id: str) -> Sequence[VerdictRow]:
    """All verdicts on a recording, in order."""
    return session.scalars(
        select(VerdictRow).where(VerdictRow.recording_id == recording_id).order_by(VerdictRow.id)
    ).all()


def visible_state(row: RecordingRow) -> str:
    """The state that people see: "open" hides whether the ensemble was certain."""
    return "open" if is_open(row) else row.state
