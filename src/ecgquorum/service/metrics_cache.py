"""Metrics that are computed again only when something has changed, and that no page waits for."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from ecgquorum.service.desk import Desk
from ecgquorum.service.desk_metrics import DeskMetrics, compute_metrics
from ecgquorum.service.store import audit

_QUICK_S = 0.1


@dataclass(frozen=True)
class _Known:
    """Metrics, the number of the last change that they contain, and the time that they took."""

    metrics: DeskMetrics
    change: int
    seconds: float


def current_metrics(desk: Desk) -> DeskMetrics:
    """The metrics of the current model; they are computed again when something has changed."""
    with desk.store.read_session() as session:
        change = audit.head(session)[0]
        known: _Known | None = desk.computed.get("metrics")
        if known is None or known.change != change:
            began = time.thread_time()
            metrics = compute_metrics(session, desk)
            desk.computed["metrics"] = known = _Known(metrics, change, time.thread_time() - began)
        return known.metrics


def recent_metrics(desk: Desk) -> tuple[DeskMetrics, bool]:
    """The metrics without waiting for long, and whether they are current.

    Where computing them takes long, those computed last are returned, and a thread computes the current ones.
    """
    known: _Known | None = desk.computed.get("metrics")
    with desk.store.read_session() as session:
        change = audit.head(session)[0]
    if known is None or known.change == change or known.seconds < _QUICK_S:
        return current_metrics(desk), True
    if desk.computing.acquire(blocking=False):
        threading.Thread(target=_compute_once, args=(desk,), name="metrics", daemon=True).start()
    return known.metrics, False


def _compute_once(desk: Desk) -> None:
    try:
        with suppress(SQLAlchemyError):  # a database that is down: the next request tries again
            current_metrics(desk)
    finally:
        desk.computing.release()
