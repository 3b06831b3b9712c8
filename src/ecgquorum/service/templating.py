"""Rendering of pages, also of errors: people get a page, programs get JSON."""

import secrets
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from ecgquorum.service.csrf import csrf_token
from ecgquorum.service.desk import Desk
from ecgquorum.service.identity import COOKIE
from ecgquorum.service.store.tokens import Actor, Role

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
_NAVIGATION = (
    ("/", "Worklist", frozenset(Role)),
    ("/upload", "Upload", frozenset({Role.UPLOADER, Role.ADMIN})),
    ("/measures", "Metrics", frozenset({Role.READER, Role.AUDITOR, Role.ADMIN})),
    ("/export", "Export", frozenset({Role.AUDITOR, Role.ADMIN})),
    ("/audit", "Audit log", frozenset({Role.AUDITOR, Role.ADMIN})),
    ("/admin", "Admin", frozenset({Role.ADMIN})),
)
_TITLES = {
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "Not possible now",
    413: "Too large",
    421: "Another host",
    422: "Not valid",
    503: "The desk is not available",
}


def format_duration(seconds: float) -> str:
    """Format a duration with its two largest units."""
    units = (("day", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        count, seconds = divmod(seconds, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{int(count)} {unit}{'s' if unit == 'day' and count != 1 else ''}")
    return " ".join(parts[:2])


def format_length(seconds: float) -> str:
    """Format the length of a recording."""
    return f"{seconds:.1f} s".replace(".0 s", " s") if seconds < 60 else format_duration(seconds)


def format_time(at: str | None) -> str:
    """Format a stored time, in UTC."""
    return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M") if at else ""


def format_bytes(count: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


_templates.filters |= {
    "format_duration": format_duration,
    "format_length": format_length,
    "format_time": format_time,
    "format_bytes": format_bytes,
}


def set_cookie(request: Request, response: Response, secret: str, age_s: float) -> None:
    """Set the session cookie, which scripts cannot read and requests of other sites do not carry."""
    response.set_cookie(
        COOKIE, secret, max_age=round(age_s), httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )


def render_text(template: str, **values: Any) -> str:
    """Render a part of a page."""
    return _templates.get_template(template).render(**values)


def render_page(request: Request, desk: Desk, who: Actor | None, template: str, **values: Any) -> HTMLResponse:
    """Render a page; if tokens are off, a browser without a session gets a cookie for its CSRF token."""
    cookie = request.cookies.get(COOKIE, "")
    fresh = "" if cookie or desk.settings.tokens else secrets.token_urlsafe(32)
    navigation = [(path, name) for path, name, roles in _NAVIGATION if who and roles & who.roles]
    text = render_text(
        template,
        csrf=csrf_token(desk, cookie or fresh),
        who=who,
        tokens=desk.settings.tokens,
        navigation=navigation,
        here=request.url.path,
        model=desk.model_name,
        **values,
    )
    response = HTMLResponse(text)
    if fresh:
        set_cookie(request, response, fresh, desk.settings.session_s)
    return response


def respond_to_error(request: Request, desk: Desk, status: int, detail: Any) -> Response:
    """An error as JSON, or as a page if a person asked for one."""
    is_program = request.url.path.startswith(("/api/", "/static/")) or request.method not in ("GET", "HEAD")
    if is_program or not isinstance(detail, str):
        return JSONResponse({"detail": detail}, status)
    who = getattr(request.state, "actor", None)
    page = render_page(
        request, desk, who, "error.html", title=_TITLES.get(status, "Error"), status=status, detail=detail
    )
    page.status_code = status
    del page.headers["set-cookie"]  # a refused request opens nothing
    return page
