"""The HTTP API: one router for each subject."""

from ecgquorum.service.api import (
    admin_status,
    administration,
    case_details,
    desk_metrics,
    exports,
    maps,
    recordings,
    reviews,
    sessions,
)

ROUTERS = (
    sessions.router,
    recordings.router,
    reviews.router,
    administration.router,
    admin_status.router,
    maps.router,
    case_details.router,
    desk_metrics.router,
    exports.router,
)

__all__ = ["ROUTERS"]
