"""What people and programs may see of a recording; an open case hides the ensemble's result at first."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.ensemble.result import Result
from ecgquorum.preprocessing.quality import Finding, Quality
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import NotFoundError
from ecgquorum.service.store import models, recordings, reviews
from ecgquorum.service.store.tables import RecordingRow, ResultRow, SenderRow, State, VerdictRow
from ecgquorum.service.store.tokens import Actor, Role
from ecgquorum.service.uploads import missing_files

_A_READER = "a reader"


class Answer(BaseModel):
    """The ensemble's result.

    probability, probabilities: calibrated, of the label and by class
    raw_member_probabilities:   by member, numbered from 0
    uncertainty:                normalised mutual information; may exceed 1
    risk:                       estimated probability that the label is wrong
    urgent_class:               the most urgent class of the recording or of a window; empty if none is urgent
    """

    label: str
    decision: str
    reason: str
    uncertainty: float | None
    probability: float | None
    probabilities: dict[str, float]
    raw_probabilities: dict[str, float]
    raw_member_probabilities: list[dict[str, float]]
    risk: float | None
    urgent_class: str
    model_sha256: str
    audited: bool


class Verdict(BaseModel):
    """A verdict of a reader; `stage`: first or final; `kind`: class, classes, none or unclear.

    label: the answer as text · labels: its classes · round: above 1 after the case was reopened
    """

    reader: str
    stage: str
    kind: str
    label: str
    labels: list[str]
    comment: str
    round: int
    was_blind: bool
    at: str


class Case(BaseModel):
    """A recording with its state.

    state:     incomplete, waiting, open, certain, unreadable, confirmed or amended
    missing:   names of its missing files
    waiting_s: from the upload until it was classified or closed
    classes:   those of the model that classified it, to choose from
    quality_summary: the findings, those of several leads in one line
    n_windows: of a long recording, which the ensemble classified one by one
    acquisition: what the file states about patient, time and device, if the desk keeps it
    round:     1, and one more each time it was reopened · finished: whether you have read it in this round
    answer:    the ensemble's result; None while it is hidden or does not exist
    verdicts:  the reader's own while the case is open; all when it is closed, or when two disagree

    Uploaders see no names of readers.
    """

    id: str
    name: str
    uploader: str
    state: str
    missing: list[str]
    uploaded_at: str
    classified_at: str | None
    closed_at: str | None
    waiting_s: float
    seconds: float | None
    rate_hz: float | None
    leads: list[str]
    n_windows: int
    acquisition: list[str]
    has_trace: bool
    quality: str | None
    quality_reasons: list[str]
    quality_summary: list[str]
    problem: str
    urgent: bool
    assigned_to: str | None
    classes: list[str]
    round: int
    finished: bool
    claimed_by: str | None
    claimed_until: str | None
    answer: Answer | None
    verdicts: list[Verdict]


class CaseList(BaseModel):
    """A page of the worklist, and the number of recordings in all."""

    total: int
    cases: list[Case]


def visible_row(session: Session, actor: Actor, recording_id: str) -> RecordingRow:
    """The recording, if this person may see it: an uploader sees their own uploads only."""
    row = recordings.find_recording(session, recording_id)
    if (
        actor.roles == {Role.UPLOADER}
        and row.uploader != actor.name
        and session.get(SenderRow, (row.id, actor.name)) is None
    ):
        raise NotFoundError("there is no recording with this id")
    return row


def make_case(session: Session, desk: Desk, actor: Actor, row: RecordingRow) -> Case:
    """A recording as this person may see it."""
    result = reviews.latest_result(session, row.id) if row.classified_at else None
    return make_cases(session, desk, actor, [(row, result)])[0]


def make_cases(
    session: Session, desk: Desk, actor: Actor, rows: Sequence[tuple[RecordingRow, ResultRow | None]]
) -> list[Case]:
    """Recordings as this person may see them."""
    ids = [row.id for row, _ in rows]
    verdicts: dict[str, list[VerdictRow]] = {}
    for verdict in session.scalars(select(VerdictRow).where(VerdictRow.recording_id.in_(ids)).order_by(VerdictRow.id)):
        verdicts.setdefault(verdict.recording_id, []).append(verdict)
    return [_case(session, desk, actor, row, result, verdicts.get(row.id, [])) for row, result in rows]


def _case(
    session: Session,
    desk: Desk,
    actor: Actor,
    row: RecordingRow,
    stored: ResultRow | None,
    verdicts: Sequence[VerdictRow],
) -> Case:
    now = desk.store.now()
    result = stored.result if stored else None
    is_open, is_uploader = reviews.is_open(row), actor.roles == {Role.UPLOADER}
    current = [verdict for verdict in verdicts if verdict.round == row.round]
    own = [verdict for verdict in current if verdict.reader == actor.name]
    is_shown = not (reviews.is_blind(row) and desk.settings.blind_first and not own)
    ended = row.closed_at or (None if is_open else row.classified_at)
    holder = reviews.claim_holder(row, now)
    missing = missing_files(row, recordings.list_files(session, row.id)) if row.state == State.INCOMPLETE else ()
    visible = (current if own and row.n_readers > 2 else own) if reviews.is_blind(row) else verdicts
    return Case(
        id=row.id,
        name=sent_name(session, row, actor),
        uploader=actor.name if is_uploader else row.uploader,
        state=reviews.visible_state(row),
        missing=list(missing),
        uploaded_at=row.uploaded_at,
        classified_at=row.classified_at,
        closed_at=row.closed_at,
        waiting_s=seconds_between(row.uploaded_at, ended or now),
        seconds=result.seconds if result else None,
        rate_hz=row.rate_hz,
        leads=[str(lead) for lead in row.leads or ()],
        n_windows=len(result.windows) if result else 0,
        acquisition=list(result.acquisition.lines()) if result else [],
        has_trace=row.rate_hz is not None,
        quality=str(result.quality.severity) if result else None,
        quality_reasons=list(result.quality.reasons) if result else [],
        quality_summary=summarise_findings(result.quality) if result else [],
        problem=result.reason if result and row.state == State.UNREADABLE else "",
        urgent=row.urgent,
        assigned_to=None if is_uploader else row.assigned_to,
        classes=models.classes_of(session, stored)[0] if stored else [],
        round=row.round,
        finished=any(verdict.stage == reviews.FINAL for verdict in own),
        claimed_by=_A_READER if holder and is_uploader else holder,
        claimed_until=row.reader_until if holder else None,
        answer=_answer(row, result) if result and is_shown and row.state != State.UNREADABLE else None,
        verdicts=_number_readers(visible) if is_uploader else [_verdict(one) for one in visible],
    )


def sent_name(session: Session, row: RecordingRow, actor: Actor) -> str:
    """The file name; an uploader sees the one that they sent."""
    if actor.roles != {Role.UPLOADER} or row.uploader == actor.name:
        return row.name
    sender = session.get(SenderRow, (row.id, actor.name))
    return sender.name if sender else row.name


def summarise_findings(quality: Quality) -> list[str]:
    """The findings as text, the worst first; the same finding on several leads is one line."""
    leads: dict[tuple[int, str], list[Finding]] = {}
    for finding in quality.findings:
        leads.setdefault((-finding.severity, finding.name), []).append(finding)
    return [
        str(found[0]) if len(found) == 1 else f"{name} on {len(found)} leads"
        for (_, name), found in sorted(leads.items(), key=lambda item: item[0][0])
    ]


def _answer(row: RecordingRow, result: Result) -> Answer:
    return Answer(
        label=result.label,
        decision=result.decision,
        reason=result.reason,
        uncertainty=result.uncertainty,
        probability=result.probability,
        probabilities=dict(result.probabilities),
        raw_probabilities=dict(result.raw_probabilities),
        raw_member_probabilities=[dict(probs) for probs in result.raw_member_probabilities],
        risk=result.risk,
        urgent_class=result.urgent_class,
        model_sha256=result.model_sha256,
        audited=row.audited,
    )


def _verdict(row: VerdictRow) -> Verdict:
    return Verdict(
        reader=row.reader,
        stage=row.stage,
        kind=row.kind,
        label=row.label,
        labels=[str(label) for label in row.labels],
        comment=row.comment,
        round=row.round,
        was_blind=row.was_blind,
        at=row.at,
    )


def _number_readers(rows: Sequence[VerdictRow]) -> list[Verdict]:
    """Verdicts as uploaders see them: of reader 1, reader 2 and so on, without names."""
    numbers: dict[str, int] = {}
    for row in rows:
        numbers.setdefault(row.reader, len(numbers) + 1)
    return [_verdict(row).model_copy(update={"reader": f"reader {numbers[row.reader]}"}) for row in rows]


def seconds_between(earlier: str, later: str) -> float:
    """Seconds between two stored times."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
