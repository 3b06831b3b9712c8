"""Middleware before every route: host, token, role and CSRF checks, body limit, security headers."""

import hashlib
import hmac
from typing import Any

import anyio.to_thread
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ecgquorum.service.access import PUBLIC, roles_for
from ecgquorum.service.desk import Desk
from ecgquorum.service.store import tokens
from ecgquorum.service.store.tokens import LOCAL, Actor

COOKIE = "ecgquorum_session"
CSRF_HEADER = "x-csrf-token"
_SAFE = ("GET", "HEAD")
_MAX_BODY = 1 << 16
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


def csrf_token(desk: Desk, cookie: str) -> str:
    """The CSRF token that pages of this session send with every change."""
    return hmac.digest(desk.session_secret, f"csrf/{cookie}".encode(), hashlib.sha256).hex()


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

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message, scope["path"])
            await send(message)

        request = Request(scope)
        refusal = await self._check(request)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
        else:
            limited = receive if (request.method, request.url.path) == _STREAMED else _limit_body(receive)
            await self._app(scope, limited, send_with_headers)

    async def _check(self, request: Request) -> Response | None:
        if not self._desk.settings.accepts_host(request.headers.get("host", "")):
            return _error(421, "the Host header does not name this desk")
        allowed = roles_for(request.url.path)
        if not allowed:
            return _error(404, "there is no such page or route")
        method = "GET" if request.method == "HEAD" else request.method
        if method not in allowed:
            answer = _error(405, f"{request.method} is not allowed here; use {' or '.join(allowed)}")
            answer.headers["allow"] = ", ".join(allowed)
            return answer
        roles = allowed[method]
        if roles != PUBLIC:
            actor = await anyio.to_thread.run_sync(self._actor, request)
            request.scope.setdefault("state", {})["actor"] = actor
            if actor is None:
                return _ask_for_token(request)
            if not roles & actor.roles:
                return _error(403, f"this needs the role {' or '.join(sorted(roles))}; you have {_role_names(actor)}")
        if method not in _SAFE and self._is_forged(request):
            return _error(403, "no valid CSRF token; send the request from the desk's pages, or with an API token")
        declared = request.headers.get("content-length", "0")
        if (method, request.url.path) != _STREAMED and (not declared.isdigit() or int(declared) > _MAX_BODY):
            return _error(413, f"the body has more than {_MAX_BODY} bytes")
        return None

    def _actor(self, request: Request) -> Actor | None:
        if not self._desk.settings.tokens:
            return LOCAL
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        with self._desk.store.read_session() as session:
            if kind.lower() == "bearer":
                return tokens.actor_of_token(session, token.strip())
            cookie = request.cookies.get(COOKIE, "")
            return tokens.actor_of_session(session, self._desk.store.now(), cookie) if cookie else None

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
        if request.url.path == "/api/session" and request.method == "POST":
            return False  # it carries a token in its body, and its origin has been checked
        if not is_browser:
            return self._desk.settings.tokens
        return not hmac.compare_digest(headers.get(CSRF_HEADER, "").encode(), csrf_token(self._desk, cookie).encode())


def _limit_body(receive: Receive) -> Receive:
    """Disconnect if a body that is not an upload exceeds the limit, whatever its Content-Length says."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        return message if n_bytes <= _MAX_BODY else {"type": "http.disconnect"}

    return limited


def _add_headers(message: Message, path: str) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("cache-control", "no-cache" if path.startswith("/static/") else "no-store")


def _ask_for_token(request: Request) -> Response:
    if request.method in _SAFE and not request.url.path.startswith("/api/"):
        return RedirectResponse("/login", 303)
    answer = _error(401, "no valid token; send it as Authorization: Bearer TOKEN")
    answer.headers["www-authenticate"] = "Bearer"
    return answer


def _role_names(actor: Actor) -> str:
    return ", ".join(sorted(actor.roles))


def _error(status: int, detail: str) -> JSONResponse:
    content: dict[str, Any] = {"detail": detail}
    return JSONResponse(content, status)
