"""Who makes a request: by a token, by the session of a browser, or the local user while tokens are off."""

from starlette.requests import Request

from ecgquorum.service.desk import Desk
from ecgquorum.service.store import tokens
from ecgquorum.service.store.tokens import LOCAL, Actor

COOKIE = "ecgquorum_session"
AUTOMATIC_HEADER = "x-automatic"
"""Requests of a page by itself, without a person, carry this; they do not extend a session."""


def identify(desk: Desk, request: Request) -> Actor | None:
    """The person or program with a valid token or session; None without one."""
    if not desk.settings.tokens:
        return LOCAL
    now = desk.store.now()
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    with desk.store.read_session() as session:
        if kind.lower() == "bearer":
            return tokens.actor_of_token(session, now, token.strip())
        cookie = request.cookies.get(COOKIE, "")
        idle_since = desk.store.after(-desk.settings.idle_s)
        return tokens.actor_of_session(session, now, idle_since, cookie) if cookie else None


def note_activity(desk: Desk, request: Request) -> None:
    """Extend the session of a person who has done something; at most once a minute."""
    cookie = request.cookies.get(COOKIE, "")
    is_automatic = AUTOMATIC_HEADER in request.headers or request.url.path == "/api/events"
    if not desk.settings.tokens or not cookie or is_automatic:
        return
    recent = desk.store.after(-60.0)
    with desk.store.read_session() as session:
        if not tokens.is_stale(session, recent, cookie):
            return
    with desk.store.write_session() as session:
        tokens.touch_session(session, desk.store.now(), cookie)
