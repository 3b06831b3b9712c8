"""Routes of recordings: upload, list, show, samples, and the event stream of changes."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from ecgquorum.service.api.dependencies import (
    CurrentActor,
    CurrentChanges,
    CurrentDesk,
    RecordingId,
    error_responses,
    file_responses,
)
from ecgquorum.service.api.worklist_query import ListFilter
from ecgquorum.service.change_feed import ChangeFeed
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import NotFoundError
from ecgquorum.service.identity import identify
from ecgquorum.service.store import reviews, worklist
from ecgquorum.service.store.tokens import Role
from ecgquorum.service.uploads import receive_upload
from ecgquorum.service.views import Case, CaseList, make_case, make_cases, visible_row

router = APIRouter(prefix="/api", tags=["recordings"])
_POLL_S, _KEEPALIVE_S, _RECHECK_S = 1.0, 15.0, 3.0


class UploadedRecording(BaseModel):
    """The recording that a file belongs to; `missing`: its missing files; `new`: not uploaded before."""

    id: str
    state: str
    missing: list[str]
    new: bool


class TraceInfo(BaseModel):
    """Shape of `samples`: `n_samples` float32 in millivolts for each lead."""

    rate_hz: float
    leads: list[str]
    n_samples: int


@router.put(
    "/recordings",
    status_code=201,
    responses={200: {"model": UploadedRecording}, **error_responses(409, 415, 507)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def upload(
    request: Request,
    response: Response,
    desk: CurrentDesk,
    who: CurrentActor,
    name: Annotated[str, Query(min_length=1, max_length=1000, description="File name; its suffix gives the format.")],
) -> UploadedRecording:
    """Upload one file as the body of the request. When this returns, the file is synced to disk.

    The same bytes again change nothing and return the same id (200 instead of 201). A WFDB header and its signal files
    are uploaded one by one, in any order; the recording is `incomplete` until all of them are there.
    """
    declared = request.headers.get("content-length")
    length = int(declared) if declared and declared.isdigit() else None
    done = await receive_upload(desk, who.name, name, request.stream(), length)
    if not done.is_new:
        response.status_code = 200
    state = reviews.visible_state(done.row)
    return UploadedRecording(id=done.row.id, state=state, missing=list(done.missing), new=done.is_new)


@router.get("/recordings", responses=error_responses())
def list_recordings(desk: CurrentDesk, who: CurrentActor, wanted: ListFilter) -> CaseList:
    """The worklist: open cases first, the most uncertain at the top. Uploaders see their own uploads only."""
    with desk.store.read_session() as session:
        rows, total = worklist.query_worklist(session, wanted.filter_for(who), wanted.limit, wanted.offset)
        return CaseList(total=total, cases=make_cases(session, desk, who, rows))


@router.get("/recordings/{id}", responses=error_responses(404))
def show_recording(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> Case:  # noqa: A002 (the name in the path)
    """One recording, with the ensemble's result if this person may see it."""
    with desk.store.read_session() as session:
        return make_case(session, desk, who, visible_row(session, who, id))


@router.get("/recordings/{id}/trace", responses=error_responses(404))
def trace(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> TraceInfo:  # noqa: A002
    """Rate, leads and length of the stored samples."""
    with desk.store.read_session() as session:
        row = visible_row(session, who, id)
    if row.rate_hz is None or row.n_samples is None:
        raise NotFoundError("no samples are stored: the recording has not been read yet, or could not be read")
    return TraceInfo(rate_hz=row.rate_hz, leads=[str(lead) for lead in row.leads or ()], n_samples=row.n_samples)


@router.get(
    "/recordings/{id}/samples",
    response_class=FileResponse,
    responses=file_responses("application/octet-stream", 404),
)
def samples(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> FileResponse:  # noqa: A002
    """Little-endian float32, (lead, time), in millivolts; a missing sample is NaN."""
    with desk.store.read_session() as session:
        row = visible_row(session, who, id)
    path = desk.files.trace_path(row.id)
    if row.rate_hz is None or not path.is_file():
        raise NotFoundError("no samples are stored: the recording has not been read yet, or could not be read")
    return FileResponse(path, media_type="application/octet-stream")


@router.get("/events", response_class=StreamingResponse, responses=file_responses("text/event-stream"))
async def events(
    request: Request,
    desk: CurrentDesk,
    changes: CurrentChanges,
    since: Annotated[int, Query(ge=-1, le=1 << 31, description="Number of the last change that is known.")] = -1,
) -> StreamingResponse:
    """Server-sent events `changed`: a number that grows, and the ids of the recordings that changed, or null for any.

    The stream ends when the token is revoked or the session ends.
    """
    last = re.fullmatch("[0-9]{1,10}", request.headers.get("last-event-id", ""))
    stream = _stream_changes(request, desk, changes, int(last[0]) if last else since)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _stream_changes(request: Request, desk: Desk, changes: ChangeFeed, seen: int) -> AsyncIterator[str]:
    changes.n_streams += 1
    names_ids = request.state.actor.roles != {Role.UPLOADER}
    quiet_s = checked_s = 0.0
    try:
        while not changes.stopping.is_set() and not await request.is_disconnected():
            change = await changes.since(seen)
            quiet_s, checked_s = quiet_s + _POLL_S, checked_s + _POLL_S
            if change.number > seen:
                ids = list(change.ids) if names_ids and change.ids is not None else None
                data = json.dumps({"number": change.number, "ids": ids})
                yield f"event: changed\nid: {change.number}\ndata: {data}\n\n"
                seen, quiet_s = change.number, 0.0
            elif quiet_s >= _KEEPALIVE_S:
                yield ": still here\n\n"
                quiet_s = 0.0
            if checked_s >= _RECHECK_S:
                checked_s = 0.0
                with suppress(SQLAlchemyError):  # a lost database ends no session
                    if await anyio.to_thread.run_sync(identify, desk, request) is None:
                        return
            with suppress(TimeoutError):
                await asyncio.wait_for(changes.stopping.wait(), _POLL_S)
    finally:
        changes.n_streams -= 1
