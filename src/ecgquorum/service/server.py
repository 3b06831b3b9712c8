"""Serve the desk until a signal stops it."""

import threading
from dataclasses import replace
from types import FrameType

import uvicorn

from ecgquorum.errors import DeskError
from ecgquorum.service.application import desk_application
from ecgquorum.service.change_feed import ChangeFeed
from ecgquorum.service.demo_desk import fill_demo
from ecgquorum.service.desk import Desk
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import tokens

_GRACE_S = 10


class _Server(uvicorn.Server):
    """A server that ends event streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, changes: ChangeFeed) -> None:
        super().__init__(config)
        self._changes = changes

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End event streams at the first signal."""
        self._changes.stopping.set()
        super().handle_exit(sig, frame)


def open_desk(settings: Settings) -> Desk:
    """Open the desk and migrate its database; a desk that other machines can reach must have tokens."""
    desk = Desk(settings)
    desk.store.migrate()
    desk.files.clear_abandoned()
    with desk.store.read_session() as session:
        known = tokens.list_tokens(session)
    if not settings.is_loopback and all(token.revoked_at for token in known):
        raise DeskError(
            f"--host {settings.host}: other machines can reach the desk, so it needs tokens, and there are none; "
            "add one first: ecgquorum token add NAME --role reader"
        )
    desk.settings = replace(settings, tokens=settings.tokens or bool(known))
    return desk


def serve(desk: Desk, *, demo: bool = False) -> None:
    """Serve until Ctrl-C or another signal."""
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
        threading.Thread(target=fill_demo, args=(desk,), name="demo", daemon=True).start()
    try:
        _Server(config, changes).run()
    finally:
        desk.close()
