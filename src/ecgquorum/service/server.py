"""Serve the desk until a signal stops it."""

import threading
from contextlib import suppress
from dataclasses import replace
from types import FrameType

import uvicorn
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp

from ecgquorum.errors import DeskError
from ecgquorum.service.application import desk_application
from ecgquorum.service.change_feed import ChangeFeed
from ecgquorum.service.connections import GuardedProtocol
from ecgquorum.service.demo_desk import fill_demo
from ecgquorum.service.desk import Desk
from ecgquorum.service.erasing import finish_erasures
from ecgquorum.service.metrics_cache import current_metrics
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import audit, models, tokens
from ecgquorum.service.triaged_folder import TriagedFolder

_GRACE_S = 10
_KEEP_ALIVE_S = 15


class _Server(uvicorn.Server):
    """A server that ends event streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, changes: ChangeFeed) -> None:
        super().__init__(config)
        self._changes = changes

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End event streams at the first signal."""
        self._changes.stopping.set()
        super().handle_exit(sig, frame)


class ModelChangedError(DeskError):
    """Open cases were classified by another model, and nobody has said what to do with them."""


def open_desk(settings: Settings, triaged: TriagedFolder | None = None) -> Desk:
    """Open the desk and migrate its database; a desk that other machines can reach must have tokens.

    triaged: a folder that will be opened at it; one of another model is an error before anything is changed
    """
    desk = Desk(settings)
    if triaged:
        triaged.check_model(desk.ensemble)
    desk.store.migrate()
    desk.load_secrets()
    desk.files.clear_abandoned()
    finish_erasures(desk)
    with desk.store.read_session() as session:
        known = tokens.list_tokens(session)
    if not settings.is_loopback and all(token.revoked_at for token in known):
        raise DeskError(
            f"--host {settings.host}: other machines can reach the desk, so it needs tokens, and there are none; "
            "add one first: ecgquorum token add NAME --role reader"
        )
    desk.settings = replace(settings, tokens=settings.tokens or bool(known))
    _check_second_reading(desk)
    _use_model(desk)
    return desk


def _check_second_reading(desk: Desk) -> None:
    """A second reader needs a name of their own, and classes that the model has."""
    settings = desk.settings
    if (settings.second_share or settings.second_classes) and not settings.tokens:
        raise DeskError(
            "--second, --second-class: without tokens there is one reader, and a case would wait for another for ever; "
            "add tokens first: ecgquorum token add NAME --role reader"
        )
    for name in settings.second_classes:
        if name not in desk.classes:
            raise DeskError(f"--second-class: {name!r} is not a class of {desk.model_name}: {', '.join(desk.classes)}")


def _use_model(desk: Desk) -> None:
    """Register the model; open cases of another one are classified again only if the settings say so."""
    with desk.store.write_session() as session:
        is_new = models.newest_model(session) != desk.model_sha256
        n_others = models.count_open_of_others(session, desk.model_sha256) if is_new else 0
        if n_others and desk.settings.reclassify is None:
            raise ModelChangedError(
                f"{n_others} open cases were classified by another model than {desk.model_name}; "
                "classify them again with --reclassify, or keep their results and classes with --keep-results"
            )
        now = desk.store.now()
        models.register_model(session, now, desk.known_model)
        if n_others and desk.settings.reclassify:
            models.reclassify_open(session, now, desk.model_sha256)


def server_config(
    application: ASGIApp, host: str = "127.0.0.1", port: int = 0, *, behind_proxy: bool = False
) -> uvicorn.Config:
    """The configuration of the HTTP server, with its limits.

    behind_proxy: a proxy on this machine names the client's address and scheme; else any client could
    """
    return uvicorn.Config(
        application,
        host=host,
        port=port,
        http=GuardedProtocol,
        log_level="warning",
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        server_header=False,
        proxy_headers=behind_proxy,
    )


def warm_up(desk: Desk) -> None:
    """Compute the metrics and check the whole audit log once, in parts, so that pages need not."""
    known = -1
    with suppress(SQLAlchemyError):  # a database that is down: the pages do it
        current_metrics(desk)
        while True:
            with desk.store.read_session() as session:
                check = desk.log_check.update(session, audit.CHECKED_AT_ONCE)
            if check.n_entries == known or check.problem:
                return
            known = check.n_entries


def serve(desk: Desk, *, demo: bool = False) -> None:
    """Serve until Ctrl-C or another signal."""
    application, changes = desk_application(desk)
    settings = desk.settings
    config = server_config(application, settings.host, settings.port, behind_proxy=settings.is_behind_proxy)
    threading.Thread(target=warm_up, args=(desk,), name="warm-up", daemon=True).start()
    if demo:
        threading.Thread(target=fill_demo, args=(desk,), name="demo", daemon=True).start()
    try:
        _Server(config, changes).run()
    finally:
        desk.close()
