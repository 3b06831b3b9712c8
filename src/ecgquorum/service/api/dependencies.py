"""What routes need of a request: the desk, who asks, an id that is one."""

from typing import Annotated, Any

from fastapi import Depends, Path, Request
from pydantic import BaseModel

from ecgquorum.service.change_feed import Changes
from ecgquorum.service.desk import Desk
from ecgquorum.service.store.tokens import Actor


class Problem(BaseModel):
    """Why something was refused: what was expected, what was found, what to do."""

    detail: str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for its description; those of the gate are everywhere."""
    return {status: {"model": Problem} for status in (400, 401, 403, 413, 421, *statuses)}


def described(media_type: str, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that gives a file."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"content": content}, **refusals(*statuses)}


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _changes(request: Request) -> Changes:
    changes: Changes = request.app.state.changes
    return changes


def _actor(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


ThisDesk = Annotated[Desk, Depends(_desk)]
TheseChanges = Annotated[Changes, Depends(_changes)]
Who = Annotated[Actor, Depends(_actor)]
RecordingId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="A recording's id, as `PUT` gave it.")]
