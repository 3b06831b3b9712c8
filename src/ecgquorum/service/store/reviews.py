"""Reviews: claim a case, give a first verdict before the ensemble's result is shown, then a final one.

Some cases are read by two, blind to each other; if they disagree, a third reader decides.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.http_errors import ConflictError
from ecgquorum.service.store import audit
from ecgquorum.service.store.judgements import CLASS, Judgement
from ecgquorum.service.store.queue import AuditSample
from ecgquorum.service.store.tables import CLOSED, AuditRow, RecordingRow, ResultRow, State, VerdictRow

FIRST, FINAL = "first", "final"
_FREED = "claim freed"
_DOUBLE, _ADJUDICATED = 2, 3


@dataclass(frozen=True)
class Reviewer:
    """A reader, the current time, the end of a new claim, and whether the result is hidden at first.

    undo_since: a final verdict from this time on can still be withdrawn
    """

    name: str
    at: str
    until: str
    blind_first: bool
    undo_since: str = "9999"


@dataclass(frozen=True)
class SecondReading:
    """Which cases are read by two: a random share, and all of some classes, by the ensemble or by the first reader."""

    sample: AuditSample
    classes: tuple[str, ...] = ()

    def includes(self, identity: str, labels: Sequence[str]) -> bool:
        """Whether a case is read by a second reader."""
        return self.sample.number(identity, "second") < self.sample.share or bool({*labels} & {*self.classes})


def is_open(row: RecordingRow) -> bool:
    """Whether the case waits for review."""
    return row.state == State.DEFERRED or (row.state == State.CERTAIN and row.audited)


def is_blind(row: RecordingRow) -> bool:
    """Whether the result is hidden until a first verdict: the case is open, or waits to be classified again."""
    return is_open(row) or (row.state == State.WAITING and row.classified_at is not None)


def claim_holder(row: RecordingRow, at: str) -> str | None:
    """The reader whose claim is valid now."""
    return row.reader if row.reader_until and row.reader_until >= at else None


def claim_case(session: Session, row: RecordingRow, reviewer: Reviewer, *, automatic: bool = False) -> None:
    """Claim the case, or extend the claim; `automatic`: by a page, which must not take back what was freed."""
    _check_is_open(row)
    other = claim_holder(row, reviewer.at)
    if other not in (None, reviewer.name):
        raise ConflictError(f"the case is claimed by {other}")
    if has_finished(session, row, reviewer.name):
        raise ConflictError("you have read this case; it waits for another reader")
    if automatic and other is None and _is_freed_from(session, row, reviewer.name):
        raise ConflictError("an administrator ended your claim; open the case again to claim it")
    row.reader, row.reader_until = reviewer.name, reviewer.until
    if other is None:
        audit.append(session, reviewer.at, reviewer.name, "claimed", row.id)


def release_case(session: Session, row: RecordingRow, reviewer: Reviewer, action: str = "released") -> None:
    """Release the case; `action` is the word for the audit log."""
    if claim_holder(row, reviewer.at) == reviewer.name:
        row.reader = row.reader_until = None
        audit.append(session, reviewer.at, reviewer.name, action, row.id)


def free_case(session: Session, row: RecordingRow, at: str, admin: str) -> None:
    """End the claim of another reader."""
    if row.reader is not None:
        audit.append(session, at, admin, _FREED, row.id, {"reader": row.reader})
        row.reader = row.reader_until = None


def _is_freed_from(session: Session, row: RecordingRow, name: str) -> bool:
    """Whether the last that happened to the case is that this reader's claim was ended."""
    last = session.scalars(select(AuditRow).where(AuditRow.subject == row.id).order_by(AuditRow.number.desc()).limit(1))
    entry = last.first()
    return entry is not None and entry.action == _FREED and entry.details.get("reader") == name


def expire_claims(session: Session, at: str) -> int:
    """End all claims whose time is over; returns their number."""
    rows = session.scalars(select(RecordingRow).where(RecordingRow.reader_until < at)).all()
    for row in rows:
        audit.append(session, at, audit.DESK, "claim expired", row.id, {"reader": row.reader})
        row.reader = row.reader_until = None
    return len(rows)


def may_see_answer(session: Session, row: RecordingRow, name: str, blind_first: bool) -> bool:
    """Whether this person may see the ensemble's result."""
    if not is_blind(row) or not blind_first:
        return True
    return any(verdict.reader == name for verdict in current_verdicts(session, row))


def has_finished(session: Session, row: RecordingRow, name: str) -> bool:
    """Whether this reader has given a final verdict in this round."""
    return any(one.reader == name and one.stage == FINAL for one in current_verdicts(session, row))


def add_verdict(
    session: Session,
    row: RecordingRow,
    reviewer: Reviewer,
    judgement: Judgement,
    second: SecondReading | None = None,
    expected_stage: str | None = None,
) -> str:
    """Store a verdict of the reader who holds the case; returns its stage. The last final verdict closes the case.

    With blind first, the first verdict only reveals the ensemble's result; the next one is final.

    expected_stage: raise if the verdict would be of the other stage, as of a request that is sent twice
    """
    _check_is_open(row)
    if claim_holder(row, reviewer.at) != reviewer.name:
        raise ConflictError("you have not claimed this case, or your claim has expired")
    earlier = [verdict for verdict in list_verdicts(session, row.id) if verdict.reader == reviewer.name]
    has_first = any(verdict.round == row.round for verdict in earlier)
    stage = FIRST if reviewer.blind_first and not has_first else FINAL
    if expected_stage not in (None, stage):
        raise ConflictError(
            f"this is not your {expected_stage} verdict on the case; the next one is your {stage} verdict"
        )
    if not reviewer.blind_first and not has_first:
        _add(session, row, reviewer, judgement, FIRST, was_blind=False)
        _log_verdict(session, row, reviewer, judgement, FIRST)
    _add(session, row, reviewer, judgement, stage, was_blind=stage == FIRST and not earlier)
    if stage == FIRST:
        row.reader_until = reviewer.until
    else:
        row.reader = row.reader_until = None
        _close_if_done(session, row, reviewer.at, judgement, second)
    _log_verdict(session, row, reviewer, judgement, stage)
    return stage


def _log_verdict(session: Session, row: RecordingRow, reviewer: Reviewer, judgement: Judgement, stage: str) -> None:
    answer = {"label": judgement.text, "state": row.state, "round": row.round}
    details = answer | verdict_details(judgement.kind, judgement.labels, judgement.comment) | _salt()
    audit.append(session, reviewer.at, reviewer.name, f"{stage} verdict", row.id, details)


def _close_if_done(
    session: Session, row: RecordingRow, at: str, judgement: Judgement, second: SecondReading | None
) -> None:
    finals = [verdict for verdict in current_verdicts(session, row) if verdict.stage == FINAL]
    label = latest_result(session, row.id).label
    if len(finals) == 1 and second and second.includes(row.identity or "", (*judgement.labels, label)):
        row.n_readers = _DOUBLE
    if len(finals) == _DOUBLE and finals[0].label != finals[1].label:
        row.n_readers = _ADJUDICATED
    if len(finals) >= row.n_readers:
        agrees = judgement.kind == CLASS and judgement.text == label
        row.state, row.closed_at = State.CONFIRMED if agrees else State.AMENDED, at


def withdraw_verdict(session: Session, row: RecordingRow, reviewer: Reviewer) -> None:
    """Withdraw the reader's last final verdict, a few seconds after it; the case is open and claimed again."""
    finals = [verdict for verdict in current_verdicts(session, row) if verdict.stage == FINAL]
    if not finals or finals[-1].reader != reviewer.name or finals[-1].at < reviewer.undo_since:
        raise ConflictError("there is no verdict of yours that can still be withdrawn; an administrator reopens a case")
    if claim_holder(row, reviewer.at) not in (None, reviewer.name):
        raise ConflictError(f"the case is claimed by {claim_holder(row, reviewer.at)}")
    if len(finals) == _DOUBLE:
        raise ConflictError("another reader has read this case too, and what became of it told whether you agree")
    last = finals[-1]
    session.delete(last)
    session.flush()
    _open_again(session, row, n_readers=len(finals))
    row.reader, row.reader_until = reviewer.name, reviewer.until
    details = {"stage": FINAL, "label": last.label, "round": row.round} | _salt()
    audit.append(session, reviewer.at, reviewer.name, "verdict withdrawn", row.id, details)


def reopen_case(session: Session, row: RecordingRow, at: str, admin: str, reason: str) -> None:
    """Open a closed case for a new round; earlier verdicts stay stored and no longer count."""
    if row.state not in CLOSED:
        raise ConflictError(f"only a closed case can be reopened: it is {visible_state(row)}")
    row.round += 1
    _open_again(session, row, n_readers=1)
    audit.append(session, at, admin, "reopened", row.id, {"reason": reason, "round": row.round})


def _open_again(session: Session, row: RecordingRow, n_readers: int) -> None:
    row.state, row.closed_at, row.n_readers = latest_result(session, row.id).decision, None, n_readers


def _add(
    session: Session, row: RecordingRow, reviewer: Reviewer, judgement: Judgement, stage: str, was_blind: bool
) -> None:
    session.add(
        VerdictRow(
            recording_id=row.id,
            reader=reviewer.name,
            stage=stage,
            label=judgement.text,
            was_blind=was_blind,
            at=reviewer.at,
            round=row.round,
            kind=judgement.kind,
            labels=list(judgement.labels),
            comment=judgement.comment,
        )
    )
    session.flush()


def verdict_details(kind: str, labels: Sequence[str], comment: str) -> dict[str, object]:
    """What the audit log has of an answer; of a comment its hash, so that it can be erased."""
    hashed = {"comment_sha256": hashlib.sha256(comment.encode()).hexdigest()} if comment else {}
    return {"kind": kind, "labels": list(labels), **hashed}


def _salt() -> dict[str, str]:
    """Random bits for an entry that is hidden while its case is open: its hash is shown, and would tell the verdict."""
    return {"salt": secrets.token_hex(16)}


def _check_is_open(row: RecordingRow) -> None:
    if not is_open(row):
        raise ConflictError(f"the case is not open: it is {visible_state(row)}")


def latest_result(session: Session, recording_id: str) -> ResultRow:
    """The latest result of a classified recording."""
    query = select(ResultRow).where(ResultRow.recording_id == recording_id).order_by(ResultRow.id.desc())
    return session.scalars(query.limit(1)).one()


def list_verdicts(session: Session, recording_id: str) -> Sequence[VerdictRow]:
    """All verdicts on a recording, in order."""
    return session.scalars(
        select(VerdictRow).where(VerdictRow.recording_id == recording_id).order_by(VerdictRow.id)
    ).all()


def current_verdicts(session: Session, row: RecordingRow) -> list[VerdictRow]:
    """The verdicts of the current round, in order."""
    return [verdict for verdict in list_verdicts(session, row.id) if verdict.round == row.round]


def visible_state(row: RecordingRow) -> str:
    """The state that people see: "open" hides whether the ensemble was certain."""
    return "open" if is_open(row) else row.state
