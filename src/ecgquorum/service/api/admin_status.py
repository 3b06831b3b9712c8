"""Routes of the admin page: status of the desk, tokens, claims, the access log."""

import shutil
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy import func, select

from ecgquorum.errors import DeskError
from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId, error_responses
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import NotFoundError, UnprocessableError
from ecgquorum.service.store import erasure, reviews, tokens, worklist
from ecgquorum.service.store.recordings import find_recording
from ecgquorum.service.store.tables import RecordingRow, State, TokenRow

router = APIRouter(prefix="/api/admin", tags=["administration"])
_DAY_S = 86400.0


class Claim(BaseModel):
    """A case that a reader has claimed."""

    id: str
    name: str
    reader: str
    until: str


class TokenInfo(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    role: str
    created_at: str
    expires_at: str | None
    state: Literal["valid", "expired", "revoked"]


class Status(BaseModel):
    """State of the desk.

    waiting, oldest_waiting: the queue · failing: recordings that a worker has tried more than once
    files_bytes, free_bytes: stored files, and what is free on their disk · event_streams: open live connections
    """

    model: str
    counts: dict[str, int]
    waiting: int
    oldest_waiting: str | None
    failing: int
    workers: int
    workers_wanted: int
    worker_restarts: int
    event_streams: int
    files_bytes: int
    free_bytes: int
    quota_bytes: int
    claims: list[Claim]
    tokens: list[TokenInfo]


class NewToken(BaseModel):
    """Owner and role of a new token; `days`: how long it is valid, 0 for ever."""

    name: str = Field(min_length=1, max_length=100)
    role: tokens.Role
    days: int = Field(default=365, ge=0, le=3650)


class AddedToken(BaseModel):
    """The token; it is not shown again."""

    token: str


def read_status(desk: Desk, app_state: Any) -> Status:
    """The state of the desk now."""
    now, workers = desk.store.now(), app_state.workers
    with desk.store.read_session() as session:
        waiting = RecordingRow.state == State.WAITING
        claimed = select(RecordingRow).where(RecordingRow.reader_until >= now).order_by(RecordingRow.reader_until)
        return Status(
            model=desk.model_name,
            counts=worklist.count_states(session),
            waiting=session.scalar(select(func.count()).select_from(RecordingRow).where(waiting)) or 0,
            oldest_waiting=session.scalar(select(func.min(RecordingRow.completed_at)).where(waiting)),
            failing=session.scalar(
                select(func.count()).select_from(RecordingRow).where(waiting, RecordingRow.attempts > 1)
            )
            or 0,
            workers=workers.n_alive if workers else 0,
            workers_wanted=desk.settings.workers,
            worker_restarts=workers.n_restarts if workers else 0,
            event_streams=app_state.changes.n_streams,
            files_bytes=erasure.stored_bytes(session),
            free_bytes=shutil.disk_usage(desk.files.folder).free,
            quota_bytes=desk.settings.quota_bytes,
            claims=[
                Claim(id=row.id, name=row.name, reader=row.reader or "", until=row.reader_until or "")
                for row in session.scalars(claimed)
            ],
            tokens=[_token_info(row, now) for row in tokens.list_tokens(session)],
        )


def _token_info(row: TokenRow, now: str) -> TokenInfo:
    state: Literal["valid", "expired", "revoked"] = (
        "revoked" if row.revoked_at else "valid" if tokens.is_valid(row, now) else "expired"
    )
    return TokenInfo(
        id=row.id, name=row.name, role=row.role, created_at=row.created_at, expires_at=row.expires_at, state=state
    )


@router.get("", responses=error_responses())
def status(request: Request, desk: CurrentDesk) -> Status:
    """Queue, workers, disk, claims and tokens."""
    return read_status(desk, request.app.state)


@router.get("/access", responses=error_responses())
def access(desk: CurrentDesk, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[dict[str, Any]]:
    """The last requests, the latest first."""
    return desk.access_log.latest(limit)


@router.post("/tokens", status_code=201, responses=error_responses())
def add_token(new: NewToken, desk: CurrentDesk, who: CurrentActor) -> AddedToken:
    """Add a token. A desk that runs without tokens needs them from its next start on."""
    expires = desk.store.after(new.days * _DAY_S) if new.days else None
    try:
        with desk.store.write_session() as session:
            secret = tokens.add_token(session, desk.store.now(), new.name, new.role, expires, who.name)
    except DeskError as error:
        raise UnprocessableError(str(error)) from error
    return AddedToken(token=secret)


@router.delete("/tokens/{token_id}", status_code=204, responses=error_responses(404))
def revoke_token(
    token_id: Annotated[str, Path(pattern="^[0-9a-f]{16}$")], desk: CurrentDesk, who: CurrentActor
) -> None:
    """Revoke a token and close its sessions."""
    try:
        with desk.store.write_session() as session:
            tokens.revoke_token(session, desk.store.now(), token_id, who.name)
    except DeskError as error:
        raise NotFoundError(str(error)) from error


@router.delete("/claims/{id}", status_code=204, responses=error_responses(404))
def free_claim(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> None:  # noqa: A002 (the name in the path)
    """End the claim of a reader."""
    with desk.store.write_session() as session:
        reviews.free_case(session, find_recording(session, id), desk.store.now(), who.name)
