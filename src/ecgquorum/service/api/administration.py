"""Routes of administrators: change, erase and purge recordings."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from sqlalchemy import select

from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId, error_responses
from ecgquorum.service.erasing import erase
from ecgquorum.service.http_errors import ForbiddenError, UnprocessableError
from ecgquorum.service.store import assignment, erasure
from ecgquorum.service.store.tables import RecordingRow
from ecgquorum.service.store.tokens import Role
from ecgquorum.service.uploads import clean_name
from ecgquorum.service.views import Case, make_case, visible_row

router = APIRouter(prefix="/api/recordings", tags=["administration"])
Reason = Annotated[str, Query(min_length=1, max_length=500, description="Why, for the audit log.")]


class Changes(BaseModel):
    """What to change; readers may change `urgent` and `assigned_to` (empty: nobody), administrators also the name."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    urgent: bool | None = None
    assigned_to: str | None = Field(default=None, max_length=100)


class Erased(BaseModel):
    """How many recordings were erased."""

    erased: int


@router.patch("/{id}", responses=error_responses(404))
def change(id: RecordingId, changes: Changes, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002 (the path)
    """Mark a recording as urgent, assign it to a reader, or rename it."""
    if changes.name is not None and Role.ADMIN not in who.roles:
        raise ForbiddenError("only administrators can rename a recording")
    with desk.store.write_session() as session:
        row, now = visible_row(session, who, id), desk.store.now()
        if changes.name is not None:
            name = clean_name(changes.name)
            if not name:
                raise UnprocessableError("the name is empty")
            erasure.rename_recording(session, row, now, who.name, name)
        if changes.urgent is not None:
            assignment.set_urgent(session, row, now, who.name, changes.urgent)
        if changes.assigned_to is not None:
            assignment.assign(session, row, now, who.name, changes.assigned_to.strip())
        return make_case(session, desk, who, row)


@router.delete("/{id}", responses=error_responses(404))
def erase_one(id: RecordingId, reason: Reason, desk: CurrentDesk, who: CurrentActor) -> Erased:  # noqa: A002
    """Erase a recording with its files, results and verdicts; the audit log keeps that it was erased, and why."""
    with desk.store.read_session() as session:
        row = visible_row(session, who, id)
    return Erased(erased=erase(desk, [row.id], who.name, reason))


@router.delete("", responses=error_responses())
def purge(state: Literal["unreadable", "incomplete"], reason: Reason, desk: CurrentDesk, who: CurrentActor) -> Erased:
    """Erase all unreadable, or all incomplete recordings."""
    with desk.store.read_session() as session:
        ids = session.scalars(select(RecordingRow.id).where(RecordingRow.state == state)).all()
    return Erased(erased=erase(desk, ids, who.name, reason, state))
