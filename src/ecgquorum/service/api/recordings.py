"""Routes of recordings: upload, list, show, samples, and the event stream of changes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel

from ecgquorum.service.api.dependencies import (
    CurrentActor,
    CurrentChanges,
    CurrentDesk,
    RecordingId,
    error_responses,
    file_responses,
)
from ecgquorum.service.change_feed import ChangeFeed
from ecgquorum.service.http_errors import NotFoundError
from ecgquorum.service.store import reviews, worklist
from ecgquorum.service.store.tokens import Role
from ecgquorum.service.store.worklist import WorklistFilter
from ecgquorum.service.uploads import receive_upload
from ecgquorum.service.views import Case, CaseList, make_case, make_cases, visible_row

router = APIRouter(prefix="/api", tags=["recordings"])
_POLL_S, _KEEPALIVE_S = 1.0, 15.0
ShownState = Literal["", "open", "waiting", "incomplete", "confirmed", "amended", "certain", "unreadable"]
Quality = Literal["", "usable", "doubtful", "unreadable"]


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
    responses={200: {"model": UploadedRecording}, **error_responses(415, 507)},
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
def list_recordings(
    desk: CurrentDesk,
    who: CurrentActor,
    state: ShownState = "",
    quality: Quality = "",
    q: Annotated[str, Query(max_length=200, description="Part of the name or of the id.")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> CaseList:
    """The worklist: open cases first, the most uncertain at the top. Uploaders see their own uploads only."""
    uploader = who.name if who.roles == {Role.UPLOADER} else ""
    with desk.store.read_session() as session:
        wanted = WorklistFilter(state, quality, q.replace("\0", ""), uploader)
        rows, total = worklist.query_worklist(session, wanted, limit, offset)
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
async def events(request: Request, changes: CurrentChanges) -> StreamingResponse:
    """Server-sent events: `changed`, with a number that grows, whenever anything has changed."""
    return StreamingResponse(_stream_changes(request, changes), media_type="text/event-stream")


async def _stream_changes(request: Request, changes: ChangeFeed) -> AsyncIterator[str]:
    seen, quiet_s = -1, 0.0
    while not changes.stopping.is_set() and not await request.is_disconnected():
        number = await changes.number()
        quiet_s += _POLL_S
        if number != seen:
            yield f"event: changed\nid: {number}\ndata: {number}\n\n"
            seen, quiet_s = number, 0.0
        elif quiet_s >= _KEEPALIVE_S:
            yield ": still here\n\n"
            quiet_s = 0.0
        try:
            await asyncio.wait_for(changes.stopping.wait(), _POLL_S)
        except TimeoutError:
            continue
