"""Routes of browser sessions, health and the OpenAPI description."""

import math
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError

from ecgquorum.service.api.dependencies import CurrentDesk, error_responses
from ecgquorum.service.http_errors import HttpError
from ecgquorum.service.identity import COOKIE
from ecgquorum.service.store import audit, tokens
from ecgquorum.service.templating import set_cookie

router = APIRouter(prefix="/api", tags=["desk"])


class WrongTokenError(HttpError):
    """The token does not exist or was revoked."""

    status = 401


class ThrottledError(HttpError):
    """Too many failed sign-ins from this address."""

    status = 429


class Health(BaseModel):
    """`live`: the desk is running; `ready`: its database responds; `workers`: how many classify."""

    status: Literal["ok", "unavailable"]
    live: bool
    ready: bool
    workers: int


class Token(BaseModel):
    """A token, as printed by `ecgquorum token add`."""

    token: str = Field(min_length=1, max_length=200)


@router.get("/health", responses={503: {"model": Health}})
def health(request: Request, response: Response, desk: CurrentDesk) -> Health:
    """Whether the desk is running, and ready to serve; 503 if its database does not respond."""
    ready = True
    try:
        with desk.store.read_session() as session:
            audit.head(session)
    except SQLAlchemyError as error:
        desk.outage.begin(error)
        ready, response.status_code = False, 503
    else:
        desk.outage.end()
    workers = request.app.state.workers
    n_workers = workers.n_alive if workers else 0
    return Health(status="ok" if ready else "unavailable", live=True, ready=ready, workers=n_workers)


@router.get("/openapi.json", responses=error_responses())
def description(request: Request) -> dict[str, Any]:
    """The OpenAPI description of this API."""
    schema: dict[str, Any] = request.app.openapi()
    return schema


@router.post("/session", status_code=204, responses=error_responses(429))
def sign_in(token: Token, request: Request, response: Response, desk: CurrentDesk) -> None:
    """Open a session for a browser and set its cookie."""
    address = request.client.host if request.client else ""
    if wait_s := desk.sign_ins.wait_s(address):
        raise ThrottledError(f"too many wrong tokens; try again in {math.ceil(wait_s)} seconds")
    with desk.store.write_session() as session:
        until = desk.store.after(desk.settings.session_s)
        secret = tokens.open_session(session, desk.store.now(), until, token.token)
        if secret is None:
            tokens.refuse_sign_in(session, desk.store.now(), address)
    if secret is None:
        desk.sign_ins.fail(address)
        raise WrongTokenError("the token is not valid; an administrator adds one with: ecgquorum token add")
    set_cookie(request, response, secret, desk.settings.session_s)


@router.delete("/session", status_code=204, responses=error_responses())
def sign_out(request: Request, response: Response, desk: CurrentDesk) -> None:
    """Close the session of the browser."""
    with desk.store.write_session() as session:
        tokens.close_session(session, desk.store.now(), request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE)
