"""Routes of browser sessions, health and the OpenAPI description."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from ecgquorum.service.api.dependencies import CurrentDesk, error_responses
from ecgquorum.service.http_errors import HttpError
from ecgquorum.service.middleware import COOKIE
from ecgquorum.service.store import tokens

router = APIRouter(prefix="/api", tags=["desk"])


class WrongTokenError(HttpError):
    """The token does not exist or was revoked."""

    status = 401


class Health(BaseModel):
    """The desk is running."""

    status: Literal["ok"]


class Token(BaseModel):
    """A token, as printed by `ecgquorum token add`."""

    token: str = Field(min_length=1, max_length=200)


def set_cookie(request: Request, response: Response, secret: str, age_s: float) -> None:
    """Set the session cookie, which scripts cannot read and requests of other sites do not carry."""
    response.set_cookie(
        COOKIE, secret, max_age=round(age_s), httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )


@router.get("/health")
def health() -> Health:
    """Whether the desk is running."""
    return Health(status="ok")


@router.get("/openapi.json", responses=error_responses())
def description(request: Request) -> dict[str, Any]:
    """The OpenAPI description of this API."""
    schema: dict[str, Any] = request.app.openapi()
    return schema


@router.post("/session", status_code=204, responses=error_responses())
def sign_in(token: Token, request: Request, response: Response, desk: CurrentDesk) -> None:
    """Open a session for a browser and set its cookie."""
    with desk.store.write_session() as session:
        until = desk.store.after(desk.settings.session_s)
        secret = tokens.open_session(session, desk.store.now(), until, token.token)
    if secret is None:
        raise WrongTokenError("the token is not valid; an administrator adds one with: ecgquorum token add")
    set_cookie(request, response, secret, desk.settings.session_s)


@router.delete("/session", status_code=204, responses=error_responses())
def sign_out(request: Request, response: Response, desk: CurrentDesk) -> None:
    """Close the session of the browser."""
    with desk.store.write_session() as session:
        tokens.close_session(session, desk.store.now(), request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE)
