"""How the desk is doing, and what happened at it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from ecgquorum.service.api.dependencies import ThisDesk, refusals
from ecgquorum.service.exports import audit_entry
from ecgquorum.service.measures import Measures, measured
from ecgquorum.service.store import audit

router = APIRouter(prefix="/api", tags=["measures"])


class AuditEntry(BaseModel):
    """Who did what, when; its hash, and that of the entry before."""

    number: int
    at: str
    actor: str
    action: str
    subject: str
    details: dict[str, Any]
    previous_sha256: str
    sha256: str


class AuditPart(BaseModel):
    """A part of the audit log; `total`: entries in all; `head`: the hash of the last."""

    total: int
    head: str
    entries: list[AuditEntry]


@router.get("/measures", responses=refusals())
def measures(desk: ThisDesk) -> Measures:
    """Deferral, agreement, accuracy on audited cases, drift of uncertainty, throughput."""
    with desk.store.reading() as session:
        return measured(session, desk)


@router.get("/audit", responses=refusals())
def audit_log(
    desk: ThisDesk,
    before: Annotated[int | None, Query(ge=1, le=1 << 31, description="Only entries before this number.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditPart:
    """The audit log, the latest entry first."""
    with desk.store.reading() as session:
        total, head = audit.head(session)
        rows = audit.latest(session, before or total + 1, limit)
        return AuditPart(total=total, head=head, entries=[AuditEntry.model_validate(audit_entry(row)) for row in rows])
