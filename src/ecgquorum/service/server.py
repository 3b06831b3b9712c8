"""Serving the desk until it is told to stop."""

import threading
from dataclasses import replace
from types import FrameType

import uvicorn

from ecgquorum.errors import DeskError
from ecgquorum.service.application import desk_application
from ecgquorum.service.change_feed import Changes
from ecgquorum.service.demo_desk import fill
from ecgquorum.service.desk import Desk
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import tokens

_GRACE_S = 10


class _Server(uvicorn.Server):
    """A server that lets listeners go before it waits for them."""

    def __init__(self, config: uvicorn.Config, changes: Changes) -> None:
        super().__init__(config)
        self._changes = changes

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal asks everybody to leave."""
        self._changes.stopping.set()
        super().handle_exit(sig, frame)


def open_desk(settings: Settings) -> Desk:
    """The desk, its database up to date; one that others can reach has tokens, or is refused."""
    desk = Desk(settings)
    desk.store.migrate()
    desk.files.clear_abandoned()
    with desk.store.reading() as session:
        known = tokens.all_tokens(session)
    if not settings.is_loopback and all(token.revoked_at for token in known):
        raise DeskError(
            f"--host {settings.host}: expected tokens for a desk that others can reach, found none; "
            "make one first: ecgquorum token add NAME --role reader"
        )
    desk.settings = replace(settings, tokens=settings.tokens or bool(known))
    return desk


def serve(desk: Desk, *, demo: bool = False) -> None:
    """Serve until Ctrl-C, or a signal."""
    application, changes = desk_application(desk)
    config = uvicorn.Config(
        application,
        host=desk.settings.host,
        port=desk.settings.port,
        log_level="warning",
        timeout_graceful_shutdown=_GRACE_S,
        server_header=False,
    )
    if demo:
        threading.Thread(target=fill, args=(desk,), name="demo", daemon=True).start()
    try:
        _Server(config, changes).run()
    finally:
        desk.close()
