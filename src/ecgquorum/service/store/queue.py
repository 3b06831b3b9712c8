"""The queue of the worker: waiting recordings are claimed for a while and classified exactly once."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from ecgquorum.ensemble.result import CERTAIN, DEFERRED, Result
from ecgquorum.service.store import audit
from ecgquorum.service.store.audit import document_sha256
from ecgquorum.service.store.tables import FileRow, RecordingRow, ResultRow, State

_MOST_URGENT = 1000  # above any number of urgent classes


@dataclass(frozen=True)
class StoredTrace:
    """Rate, leads and length of stored samples.

    patient: pseudonym of the patient · recorded_at: time of the first sample; empty where the file states none
    """

    rate_hz: float
    leads: tuple[str, ...]
    n_samples: int
    patient: str = ""
    recorded_at: str = ""


@dataclass(frozen=True)
class AuditSample:
    """A pseudo-random sample of all recordings, determined by a secret key; the certain ones in it are reviewed too."""

    share: float
    secret: bytes

    def number(self, identity: str, purpose: str) -> float:
        """A number from 0 to 1, always the same for a recording, and unpredictable without the secret."""
        digest = hmac.digest(self.secret, f"{purpose}/{identity}".encode(), hashlib.sha256)
        return int.from_bytes(digest[:8], "big") / 2**64

    def includes(self, identity: str) -> bool:
        """Whether the recording is in the sample."""
        return self.number(identity, "audit") < self.share


def has_waiting(session: Session, at: str) -> bool:
    """Whether a recording waits that no worker has claimed."""
    return session.scalars(_free(at).limit(1)).first() is not None


def _free(at: str) -> Any:
    return (
        select(RecordingRow)
        .where(RecordingRow.state == State.WAITING)
        .where(or_(RecordingRow.worker_until.is_(None), RecordingRow.worker_until < at))
        .order_by(RecordingRow.attempts, RecordingRow.completed_at, RecordingRow.id)
    )


def claim_recordings(
    session: Session, at: str, until: str, worker: str, limit: int, most_bytes: int | None = None
) -> Sequence[RecordingRow]:
    """Claim the oldest waiting recordings for this worker; one that was tried before is claimed alone.

    most_bytes: of all their files; a larger recording is claimed alone
    """
    rows: Sequence[RecordingRow] = session.scalars(_free(at).limit(limit)).all()
    fresh = [row for row in rows if row.attempts == 0] or rows[:1]
    if most_bytes is not None:
        n_bytes = _count_bytes(session, [row.id for row in fresh])
        sums = accumulate(n_bytes.get(row.id, 0) for row in fresh)
        fresh = [row for place, (row, n) in enumerate(zip(fresh, sums, strict=True)) if place == 0 or n <= most_bytes]
    for row in fresh:
        row.worker, row.worker_until, row.attempts = worker, until, row.attempts + 1
    return fresh


def _count_bytes(session: Session, ids: Sequence[str]) -> dict[str, int]:
    """Size of the files of each recording."""
    query = select(FileRow.recording_id, func.sum(FileRow.n_bytes)).where(FileRow.recording_id.in_(ids))
    return {recording_id: int(n or 0) for recording_id, n in session.execute(query.group_by(FileRow.recording_id))}


def extend_claims(session: Session, worker: str, until: str) -> None:
    """Extend the claims of a worker that is still busy with them."""
    session.execute(update(RecordingRow).where(RecordingRow.worker == worker).values(worker_until=until))


def release_claims(session: Session, worker: str) -> None:
    """Give back what the worker has claimed, as if it had not tried."""
    back = {"worker": None, "worker_until": None, "attempts": RecordingRow.attempts - 1}
    session.execute(update(RecordingRow).where(RecordingRow.worker == worker).values(back))


def read_claimed(session: Session, worker: str) -> Sequence[RecordingRow]:
    """The recordings that this worker has claimed and that still wait; a caller that keeps them spares later reads."""
    claimed = RecordingRow.worker == worker, RecordingRow.state == State.WAITING
    return session.scalars(select(RecordingRow).where(*claimed)).all()


def is_claimed_by(session: Session, recording_id: str, worker: str) -> bool:
    """Whether the recording still waits and is claimed by this worker."""
    row = session.get(RecordingRow, recording_id)
    return row is not None and row.state == State.WAITING and row.worker == worker


def store_result(
    session: Session,
    at: str,
    worker: str,
    result: Result,
    trace: StoredTrace | None,
    sample: AuditSample,
    actor: str = audit.WORKER,
) -> bool:
    """Store a result, unless another worker was faster; returns whether it was stored.

    result: its `id` is that of the recording at the desk
    actor:  who classified it, for the audit log
    """
    if not is_claimed_by(session, result.id, worker):
        return False
    row, document = session.get_one(RecordingRow, result.id), result.to_json()
    session.add(
        ResultRow(
            recording_id=result.id,
            model_sha256=result.model_sha256,
            at=at,
            label=result.label,
            decision=result.decision,
            uncertainty=result.uncertainty,
            risk=result.risk,
            probability=max(result.probabilities.values(), default=None),
            quality=str(result.quality.severity),
            document=document,
        )
    )
    row.state, row.classified_at, row.worker, row.worker_until = result.decision, at, None, None
    row.drawn = sample.includes(row.identity or "")
    row.audited = result.decision == CERTAIN and row.drawn
    row.priority = _priority(result)
    if row.audited:
        row.priority = _priority_among_deferred(session, sample.number(row.identity or "", "priority"))
    if trace:
        row.rate_hz, row.leads, row.n_samples = trace.rate_hz, list(trace.leads), trace.n_samples
        row.patient, row.recorded_at = trace.patient or None, trace.recorded_at or None
    details = {
        "model": result.model_sha256,
        "decision": result.decision,
        "audited": row.audited,
        "class": result.label,
        "uncertainty": result.uncertainty,
        "risk": result.risk,
        "result_sha256": document_sha256(document),
    }
    audit.append(session, at, actor, "classified", result.id, details)
    return True


def _priority(result: Result) -> float:
    """Urgent classes before all others, the most urgent first; among equals by risk, which is at most 1."""
    return (result.risk or 0.0) + (0 if result.urgency is None else _MOST_URGENT - result.urgency)


def _priority_among_deferred(session: Session, number: float) -> float:
    """The priority of an open deferred case, chosen by `number`, so that audited cases are mixed with them."""
    is_open = RecordingRow.state == DEFERRED
    count = session.scalar(select(func.count()).select_from(RecordingRow).where(is_open)) or 0
    if not count:
        return number
    query = select(RecordingRow.priority).where(is_open).order_by(RecordingRow.priority)
    return float(session.scalars(query.offset(int(number * count)).limit(1)).one())
