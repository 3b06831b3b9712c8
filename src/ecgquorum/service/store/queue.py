"""The worker's queue: what waits to be classified, claimed for a while, answered exactly once."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from ecgquorum.ensemble.result import CERTAIN, DEFERRED
from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import RecordingRow, ResultRow, State

_ANSWER = (
    "decision",
    "reason",
    "uncertainty",
    "probability",
    "calibrated_probability",
    "probabilities",
    "member_probabilities",
    "quality",
    "quality_reasons",
    "seconds",
)


@dataclass(frozen=True)
class Trace:
    """What was kept of a recording's samples to draw."""

    rate_hz: float
    leads: tuple[str, ...]
    n_samples: int


@dataclass(frozen=True)
class Draw:
    """Which of the certain recordings people read as well: a share, drawn by a secret, the same at every time."""

    share: float
    secret: bytes

    def number(self, identity: str, purpose: str) -> float:
        """From 0 to 1, the same for the same recording; nobody foresees it without the secret."""
        digest = hmac.digest(self.secret, f"{purpose}/{identity}".encode(), hashlib.sha256)
        return int.from_bytes(digest[:8], "big") / 2**64

    def takes(self, identity: str) -> bool:
        """Whether it is one of them."""
        return self.number(identity, "audit") < self.share


def anything_waits(session: Session, at: str) -> bool:
    """Whether there is something to classify that is nobody's."""
    return session.scalars(_free(at).limit(1)).first() is not None


def _free(at: str) -> Any:
    return (
        select(RecordingRow)
        .where(RecordingRow.state == State.WAITING)
        .where(or_(RecordingRow.worker_until.is_(None), RecordingRow.worker_until < at))
        .order_by(RecordingRow.attempts, RecordingRow.completed_at, RecordingRow.id)
    )


def claim(session: Session, at: str, until: str, worker: str, most: int) -> Sequence[RecordingRow]:
    """The oldest recordings that wait and are nobody's, now this worker's; what was tried before comes alone."""
    rows: Sequence[RecordingRow] = session.scalars(_free(at).limit(most)).all()
    fresh = [row for row in rows if row.attempts == 0] or rows[:1]
    for row in fresh:
        row.worker, row.worker_until, row.attempts = worker, until, row.attempts + 1
    return fresh


def is_mine(session: Session, recording_id: str, worker: str) -> bool:
    """Whether the recording still waits for this worker."""
    row = session.get(RecordingRow, recording_id, populate_existing=True)
    return row is not None and row.state == State.WAITING and row.worker == worker


def answer(
    session: Session,
    at: str,
    worker: str,
    recording_id: str,
    model_sha256: str,
    answered: Mapping[str, Any],
    trace: Trace | None,
    draw: Draw,
) -> bool:
    """Store what the model says, unless somebody else has been faster; gives whether it was stored."""
    if not is_mine(session, recording_id, worker):
        return False
    row = session.get_one(RecordingRow, recording_id)
    values = {name: answered[name] for name in _ANSWER}
    session.add(
        ResultRow(recording_id=recording_id, model_sha256=model_sha256, at=at, label=answered["class"], **values)
    )
    decision, uncertainty = answered["decision"], answered["uncertainty"]
    row.state, row.classified_at, row.worker, row.worker_until = decision, at, None, None
    row.audited = decision == CERTAIN and draw.takes(row.identity or "")
    row.priority = uncertainty or 0.0
    if row.audited:
        row.priority = _priority_among_deferred(session, draw.number(row.identity or "", "priority"))
    if trace:
        row.rate_hz, row.leads, row.n_samples = trace.rate_hz, list(trace.leads), trace.n_samples
    details = {"model": model_sha256, "decision": decision, "class": answered["class"], "uncertainty": uncertainty}
    audit.append(session, at, "worker", "classified", recording_id, details)
    return True


def _priority_among_deferred(session: Session, number: float) -> float:
    """The priority of a deferred case that is open, drawn by `number`: so audited ones stand among them."""
    is_open = RecordingRow.state == DEFERRED
    count = session.scalar(select(func.count()).select_from(RecordingRow).where(is_open)) or 0
    if not count:
        return number
    query = select(RecordingRow.priority).where(is_open).order_by(RecordingRow.priority)
    return float(session.scalars(query.offset(int(number * count)).limit(1)).one())
