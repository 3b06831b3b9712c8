"""The gate before every route: right host, known person, allowed role, no forged request; and headers for browsers."""

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
_LONGEST_BODY = 1 << 16
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
    """What a page of this session must send with everything that changes something."""
    return hmac.digest(desk.session_secret, f"csrf/{cookie}".encode(), hashlib.sha256).hex()


class Gate:
    """Everything that comes in passes here first; what is refused never reaches a route."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app, self._desk = app, desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _guard(message, scope["path"])
            await send(message)

        request = Request(scope)
        refused = await self._refused(request)
        if refused is not None:
            await refused(scope, receive, send_guarded)
        else:
            limited = receive if (request.method, request.url.path) == _STREAMED else _limited(receive)
            await self._app(scope, limited, send_guarded)

    async def _refused(self, request: Request) -> Response | None:
        if not self._desk.settings.accepts_host(request.headers.get("host", "")):
            return _problem(421, "expected the name of this desk as Host, found another")
        allowed = roles_for(request.url.path)
        if not allowed:
            return _problem(404, "expected a page or an address of the API, found none")
        method = "GET" if request.method == "HEAD" else request.method
        if method not in allowed:
            answer = _problem(405, f"expected {' or '.join(allowed)}, found {request.method}")
            answer.headers["allow"] = ", ".join(allowed)
            return answer
        roles = allowed[method]
        if roles != PUBLIC:
            actor = await anyio.to_thread.run_sync(self._actor, request)
            request.scope.setdefault("state", {})["actor"] = actor
            if actor is None:
                return _unknown(request)
            if not roles & actor.roles:
                return _problem(403, f"expected the role {' or '.join(sorted(roles))}, found {_told(actor)}")
        if method not in _SAFE and self._is_forged(request):
            return _problem(403, "expected a request from the desk's own pages, or with a token, found neither")
        declared = request.headers.get("content-length", "0")
        if (method, request.url.path) != _STREAMED and (not declared.isdigit() or int(declared) > _LONGEST_BODY):
            return _problem(413, f"expected at most {_LONGEST_BODY} bytes, found more")
        return None

    def _actor(self, request: Request) -> Actor | None:
        if not self._desk.settings.tokens:
            return LOCAL
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        with self._desk.store.reading() as session:
            if kind.lower() == "bearer":
                return tokens.actor_of_token(session, token.strip())
            cookie = request.cookies.get(COOKIE, "")
            return tokens.actor_of_session(session, self._desk.store.now(), cookie) if cookie else None

    def _is_forged(self, request: Request) -> bool:
        """Whether another site's page may have made a browser send this."""
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


def _limited(receive: Receive) -> Receive:
    """Bodies that are not uploads are short, whatever they declare."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        return message if n_bytes <= _LONGEST_BODY else {"type": "http.disconnect"}

    return limited


def _guard(message: Message, path: str) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("cache-control", "no-cache" if path.startswith("/static/") else "no-store")


def _unknown(request: Request) -> Response:
    if request.method in _SAFE and not request.url.path.startswith("/api/"):
        return RedirectResponse("/login", 303)
    answer = _problem(401, "expected a token, found none that holds; send it as Authorization: Bearer TOKEN")
    answer.headers["www-authenticate"] = "Bearer"
    return answer


def _told(actor: Actor) -> str:
    return ", ".join(sorted(actor.roles))


def _problem(status: int, detail: str) -> JSONResponse:
    content: dict[str, Any] = {"detail": detail}
    return JSONResponse(content, status)
