"""Middleware before every route: host, token, role and CSRF checks, body limit, security headers."""

import hmac
import math
import time
from urllib.parse import quote

import anyio
import anyio.to_thread
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ecgquorum.service.access import PUBLIC, roles_for
from ecgquorum.service.csrf import csrf_token
from ecgquorum.service.desk import Desk
from ecgquorum.service.identity import COOKIE, identify, note_activity
from ecgquorum.service.outage import UNAVAILABLE, is_outage
from ecgquorum.service.store.tokens import Actor
from ecgquorum.service.templating import render_page, respond_to_error

CSRF_HEADER = "x-csrf-token"
_SAFE = ("GET", "HEAD")
_MAX_BODY = 1 << 16
_MAX_PATH = 300
_BODY_IDLE_S = 30.0
_BODY_S = 60.0  # for all of a body that is no upload
_STREAMED = ("PUT", "/api/recordings")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class AccessMiddleware:
    """Checks every request before it reaches a route."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app, self._desk = app, desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        is_static = scope["path"].startswith("/static/")

        began = time.monotonic()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, message["status"], began)
                _add_headers(message, scope["path"])
                if self._desk.outage.is_down and message["status"] < 400 and not is_static:
                    self._desk.outage.end()
            await send(message)

        request = Request(scope)
        is_upload = (request.method, scope["path"]) == _STREAMED
        try:
            refusal = await self._check(request)
        except SQLAlchemyError as error:
            if not is_outage(error):
                raise
            self._desk.outage.begin(error)
            refusal = self._error(request, 503, UNAVAILABLE)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
        else:
            await self._app(scope, _limit_body(receive, None if is_upload else _MAX_BODY), send_with_headers)

    def _note(self, scope: Scope, status: int, began: float) -> None:
        """Write a line of the access log; files of the pages themselves are left out."""
        if scope["path"].startswith("/static/"):
            return
        actor: Actor | None = scope.get("state", {}).get("actor")
        self._desk.access_log.write(
            at=self._desk.store.now(),
            who=actor.name if actor else None,
            address=scope["client"][0] if scope.get("client") else "",
            method=scope["method"],
            path=scope["path"][:_MAX_PATH],
            status=status,
            ms=round(1000 * (time.monotonic() - began)),
        )

    async def _check(self, request: Request) -> Response | None:
        if not self._desk.settings.accepts_host(request.headers.get("host", "")):
            return self._error(request, 421, "the Host header does not name this desk")
        path = request.scope["path"]  # what the router uses; request.url is made of the Host header as well
        allowed = roles_for(path)
        if not allowed:
            return self._error(request, 404, "there is no such page or route")
        method = "GET" if request.method == "HEAD" else request.method
        if method not in allowed:
            answer = self._error(request, 405, f"{request.method} is not allowed here; use {' or '.join(allowed)}")
            answer.headers["allow"] = ", ".join(allowed)
            return answer
        roles = allowed[method]
        if roles != PUBLIC:
            actor = await anyio.to_thread.run_sync(self._actor, request)
            request.scope.setdefault("state", {})["actor"] = actor
            if actor is None:
                return self._ask_for_token(request)
            if not roles & actor.roles:
                return self._error(
                    request, 403, f"this needs the role {' or '.join(sorted(roles))}; you have {_role_names(actor)}"
                )
        if method not in _SAFE and self._is_forged(request):
            return self._error(
                request, 403, "no valid CSRF token; send the request from the desk's pages, or with an API token"
            )
        declared = request.headers.get("content-length", "0")
        if (method, path) != _STREAMED and (not declared.isdigit() or int(declared) > _MAX_BODY):
            return self._error(request, 413, f"the body has more than {_MAX_BODY} bytes")
        return None

    def _actor(self, request: Request) -> Actor | None:
        actor = identify(self._desk, request)
        if actor is not None:
            note_activity(self._desk, request)
        return actor

    def _ask_for_token(self, request: Request) -> Response:
        if request.method in _SAFE and not request.url.path.startswith("/api/"):
            if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                # a link of another site does not send the cookie of the session; the same page by itself does
                return render_page(request, self._desk, None, "again.html")
            query = f"?{request.url.query}" if request.url.query else ""
            back = f"{request.url.path}{query}"
            return RedirectResponse("/login" if back == "/" else f"/login?next={quote(back, safe='')}", 303)
        answer = self._error(request, 401, "no valid token; send it as Authorization: Bearer TOKEN")
        answer.headers["www-authenticate"] = "Bearer"
        return answer

    def _error(self, request: Request, status: int, detail: str) -> Response:
        return respond_to_error(request, self._desk, status, detail)

    def _is_forged(self, request: Request) -> bool:
        """Whether the page of another site may have made a browser send this."""
        headers = request.headers
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return True
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host"):
            return True
        if self._desk.settings.tokens and headers.get("authorization", "").lower().startswith("bearer "):
            return False
        cookie = request.cookies.get(COOKIE, "")
        is_browser = origin is not None or "sec-fetch-site" in headers or bool(cookie)
        if request.scope["path"] == "/api/session" and request.method == "POST":
            return False  # it carries a token in its body, and its origin has been checked
        if not is_browser:
            return self._desk.settings.tokens
        return not hmac.compare_digest(headers.get(CSRF_HEADER, "").encode(), csrf_token(self._desk, cookie).encode())


def _limit_body(receive: Receive, limit: int | None) -> Receive:
    """Disconnect if a body exceeds its limit, whatever its Content-Length says, or if nothing of it comes for long.

    A body with a limit must come as a whole within `_BODY_S`.
    """
    n_bytes, is_complete = 0, False
    latest = math.inf if limit is None else anyio.current_time() + _BODY_S

    async def limited() -> Message:
        nonlocal n_bytes, is_complete
        if is_complete:
            return await receive()
        with anyio.move_on_after(min(_BODY_IDLE_S, latest - anyio.current_time())) as waiting:
            message = await receive()
        if waiting.cancelled_caught:
            return {"type": "http.disconnect"}
        n_bytes += len(message.get("body", b""))
        is_complete = not message.get("more_body", False)
        return message if limit is None or n_bytes <= limit else {"type": "http.disconnect"}

    return limited


def _add_headers(message: Message, path: str) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("cache-control", "no-cache" if path.startswith("/static/") else "no-store")


def _role_names(actor: Actor) -> str:
    return ", ".join(sorted(actor.roles))
