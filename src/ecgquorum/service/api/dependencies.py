"""Dependencies of routes: the desk, the actor, the change feed, a valid id."""

from typing import Annotated, Any

from fastapi import Depends, Path, Request
from pydantic import BaseModel

from ecgquorum.service.change_feed import ChangeFeed
from ecgquorum.service.desk import Desk
from ecgquorum.service.store.tokens import Actor


class Problem(BaseModel):
    """Why a request failed, and what to do."""

    detail: str


class InvalidRequest(BaseModel):
    """What is not valid: a sentence, or one entry for each field, without its value."""

    detail: str | list[dict[str, Any]]


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Error responses of a route for the OpenAPI description; those of the middleware are always included."""
    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem} for status in (400, 401, 403, 413, 421, 503, *statuses)
    }
    return problems | {422: {"model": InvalidRequest}}


def file_responses(media_type: str, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Responses of a route that returns a file."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"content": content}, **error_responses(*statuses)}


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _changes(request: Request) -> ChangeFeed:
    changes: ChangeFeed = request.app.state.changes
    return changes


def _actor(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


CurrentDesk = Annotated[Desk, Depends(_desk)]
CurrentChanges = Annotated[ChangeFeed, Depends(_changes)]
CurrentActor = Annotated[Actor, Depends(_actor)]
RecordingId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", description="Id of a recording, as returned by its upload.")
]
