"""Sessions of browsers, and what the desk says of itself."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from ecgquorum.service.api.dependencies import ThisDesk, refusals
from ecgquorum.service.http_errors import Refusal
from ecgquorum.service.middleware import COOKIE
from ecgquorum.service.store import tokens

router = APIRouter(prefix="/api", tags=["desk"])


class WrongToken(Refusal):
    """No such token."""

    status = 401


class Health(BaseModel):
    """The desk answers."""

    status: Literal["ok"]


class Token(BaseModel):
    """A token, as `ecgquorum token add` told it."""

    token: str = Field(min_length=1, max_length=200)


def set_cookie(request: Request, response: Response, secret: str, age_s: float) -> None:
    """A cookie that scripts cannot read and other sites' requests do not carry."""
    response.set_cookie(
        COOKIE, secret, max_age=round(age_s), httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )


@router.get("/health")
def health() -> Health:
    """Whether the desk answers."""
    return Health(status="ok")


@router.get("/openapi.json", responses=refusals())
def description(request: Request) -> dict[str, Any]:
    """This API, as OpenAPI."""
    described: dict[str, Any] = request.app.openapi()
    return described


@router.post("/session", status_code=204, responses=refusals())
def sign_in(token: Token, request: Request, response: Response, desk: ThisDesk) -> None:
    """Open a session for a browser; it is known by its cookie from then on."""
    with desk.store.writing() as session:
        until = desk.store.after(desk.settings.session_s)
        secret = tokens.open_session(session, desk.store.now(), until, token.token)
    if secret is None:
        raise WrongToken("expected a token that holds, found none; ask for one: ecgquorum token add")
    set_cookie(request, response, secret, desk.settings.session_s)


@router.delete("/session", status_code=204, responses=refusals())
def sign_out(request: Request, response: Response, desk: ThisDesk) -> None:
    """Close the browser's session."""
    with desk.store.writing() as session:
        tokens.close_session(session, desk.store.now(), request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE)
