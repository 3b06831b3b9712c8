"""The API: one router for each subject."""

from ecgquorum.service.api import exports, maps, measures, recordings, reviews, sessions

ROUTERS = (sessions.router, recordings.router, reviews.router, maps.router, measures.router, exports.router)

__all__ = ["ROUTERS"]
