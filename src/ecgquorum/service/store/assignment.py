"""Urgency and assignment of recordings."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.http_errors import UnprocessableError
from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import RecordingRow, TokenRow
from ecgquorum.service.store.tokens import LOCAL, Role, is_valid


def set_urgent(session: Session, row: RecordingRow, at: str, who: str, urgent: bool) -> None:
    """Mark the recording as urgent, or no longer."""
    if row.urgent != urgent:
        row.urgent = urgent
        audit.append(session, at, who, "urgent" if urgent else "not urgent", row.id)


def assign(session: Session, row: RecordingRow, at: str, who: str, reader: str) -> None:
    """Assign the recording to a reader; an empty name: to nobody."""
    if reader and reader not in list_readers(session, at):
        raise UnprocessableError(f"{reader!r} is not a reader of this desk")
    if (row.assigned_to or "") != reader:
        row.assigned_to = reader or None
        audit.append(session, at, who, "assigned", row.id, {"reader": reader})


def list_readers(session: Session, at: str) -> list[str]:
    """Names of all who can read cases; without tokens the local user."""
    rows = session.scalars(select(TokenRow).order_by(TokenRow.name)).all()
    if not rows:
        return [LOCAL.name]
    return [row.name for row in rows if row.role in (Role.READER, Role.ADMIN) and is_valid(row, at)]
