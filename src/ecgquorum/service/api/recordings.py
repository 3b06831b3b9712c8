"""Recordings: upload, list, look at; and the news of them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel

from ecgquorum.service.api.dependencies import RecordingId, TheseChanges, ThisDesk, Who, described, refusals
from ecgquorum.service.change_feed import Changes
from ecgquorum.service.http_errors import Missing
from ecgquorum.service.store import reviews, worklist
from ecgquorum.service.store.tokens import Role
from ecgquorum.service.store.worklist import Filter
from ecgquorum.service.uploads import receive
from ecgquorum.service.views import Case, CaseList, case_of, cases_of, row_for

router = APIRouter(prefix="/api", tags=["recordings"])
_NEWS_S, _QUIET_S = 1.0, 15.0
ShownState = Literal["", "open", "waiting", "incomplete", "confirmed", "amended", "certain", "unreadable"]
Quality = Literal["", "usable", "doubtful", "unreadable"]


class UploadedRecording(BaseModel):
    """The recording that a file belongs to; `missing`: files that it still waits for; `new`: not seen before."""

    id: str
    state: str
    missing: list[str]
    new: bool


class TraceInfo(BaseModel):
    """What `samples` holds: for each lead so many float32, in millivolts."""

    rate_hz: float
    leads: list[str]
    n_samples: int


@router.put(
    "/recordings",
    status_code=201,
    responses={200: {"model": UploadedRecording}, **refusals(415, 507)},
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
    desk: ThisDesk,
    who: Who,
    name: Annotated[str, Query(min_length=1, max_length=1000, description="The file's name; its ending counts.")],
) -> UploadedRecording:
    """Upload one file as the request's body. When this answers, nothing loses the file any more.

    The same bytes again change nothing and give the same id (200 instead of 201). A WFDB header and its signal files
    are uploaded one by one, in any order; the recording is `incomplete` until all of them are there.
    """
    declared = request.headers.get("content-length")
    length = int(declared) if declared and declared.isdigit() else None
    done = await receive(desk, who.name, name, request.stream(), length)
    if not done.is_new:
        response.status_code = 200
    state = reviews.shown_state(done.row)
    return UploadedRecording(id=done.row.id, state=state, missing=list(done.missing), new=done.is_new)


@router.get("/recordings", responses=refusals())
def list_recordings(
    desk: ThisDesk,
    who: Who,
    state: ShownState = "",
    quality: Quality = "",
    q: Annotated[str, Query(max_length=200, description="A part of the name or of the id.")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> CaseList:
    """The worklist: open cases first, the most uncertain at the top. Who only uploads sees their own uploads."""
    uploader = who.name if who.roles == {Role.UPLOADER} else ""
    with desk.store.reading() as session:
        wanted = Filter(state, quality, q.replace("\0", ""), uploader)
        rows, total = worklist.listed(session, wanted, limit, offset)
        return CaseList(total=total, cases=cases_of(session, desk, who, rows))


@router.get("/recordings/{id}", responses=refusals(404))
def show_recording(id: RecordingId, desk: ThisDesk, who: Who) -> Case:  # noqa: A002 (the path's word)
    """One recording; the ensemble's answer is there when this person may see it."""
    with desk.store.reading() as session:
        return case_of(session, desk, who, row_for(session, who, id))


@router.get("/recordings/{id}/trace", responses=refusals(404))
def trace(id: RecordingId, desk: ThisDesk, who: Who) -> TraceInfo:  # noqa: A002
    """What there is to draw."""
    with desk.store.reading() as session:
        row = row_for(session, who, id)
    if row.rate_hz is None or row.n_samples is None:
        raise Missing("expected samples to draw, found none: the recording has not been read, or cannot be")
    return TraceInfo(rate_hz=row.rate_hz, leads=[str(lead) for lead in row.leads or ()], n_samples=row.n_samples)


@router.get(
    "/recordings/{id}/samples",
    response_class=FileResponse,
    responses=described("application/octet-stream", 404),
)
def samples(id: RecordingId, desk: ThisDesk, who: Who) -> FileResponse:  # noqa: A002
    """Little-endian float32, (lead, time), in millivolts; a missing sample is NaN."""
    with desk.store.reading() as session:
        row = row_for(session, who, id)
    path = desk.files.trace_path(row.id)
    if row.rate_hz is None or not path.is_file():
        raise Missing("expected samples to draw, found none: the recording has not been read, or cannot be")
    return FileResponse(path, media_type="application/octet-stream")


@router.get("/events", response_class=StreamingResponse, responses=described("text/event-stream"))
async def events(request: Request, changes: TheseChanges) -> StreamingResponse:
    """Server-sent events: `changed`, with a number that grows, whenever anything has."""
    return StreamingResponse(_news(request, changes), media_type="text/event-stream")


async def _news(request: Request, changes: Changes) -> AsyncIterator[str]:
    seen, quiet_s = -1, 0.0
    while not changes.stopping.is_set() and not await request.is_disconnected():
        number = await changes.number()
        quiet_s += _NEWS_S
        if number != seen:
            yield f"event: changed\nid: {number}\ndata: {number}\n\n"
            seen, quiet_s = number, 0.0
        elif quiet_s >= _QUIET_S:
            yield ": still here\n\n"
            quiet_s = 0.0
        try:
            await asyncio.wait_for(changes.stopping.wait(), _NEWS_S)
        except TimeoutError:
            continue
