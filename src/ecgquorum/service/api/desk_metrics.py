"""Routes of the metrics and of the audit log."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from ecgquorum.service.api.dependencies import CurrentDesk, error_responses
from ecgquorum.service.desk_metrics import DeskMetrics
from ecgquorum.service.exports import blind_cases, entry_values
from ecgquorum.service.metrics_cache import current_metrics
from ecgquorum.service.store import audit

router = APIRouter(prefix="/api", tags=["measures"])


class AuditEntry(BaseModel):
    """Who did what and when, with the hash of the entry and of the one before."""

    number: int
    at: str
    actor: str
    action: str
    subject: str
    details: dict[str, Any]
    previous_sha256: str
    sha256: str


class AuditPart(BaseModel):
    """A page of the audit log; `total`: number of entries; `head`: hash of the last one."""

    total: int
    head: str
    entries: list[AuditEntry]


@router.get("/measures", responses=error_responses())
def measures(desk: CurrentDesk) -> DeskMetrics:
    """Deferral rate, agreement, accuracy on audited cases, drift of the uncertainty, throughput."""
    return current_metrics(desk)


@router.get("/audit", responses=error_responses())
def audit_log(
    desk: CurrentDesk,
    before: Annotated[int | None, Query(ge=1, le=1 << 31, description="Only entries before this number.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditPart:
    """The audit log, the latest entry first."""
    with desk.store.read_session() as session:
        total, head = audit.head(session)
        rows = audit.latest(session, before or total + 1, limit)
        hidden = blind_cases(session)
        entries = [AuditEntry.model_validate(entry_values(row, hidden)) for row in rows]
        return AuditPart(total=total, head=head, entries=entries)
