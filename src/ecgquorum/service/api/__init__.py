"""The HTTP API: one router for each subject."""

from ecgquorum.service.api import administration, desk_metrics, exports, maps, recordings, reviews, sessions

ROUTERS = (
    sessions.router,
    recordings.router,
    reviews.router,
    administration.router,
    maps.router,
    desk_metrics.router,
    exports.router,
)

__all__ = ["ROUTERS"]
