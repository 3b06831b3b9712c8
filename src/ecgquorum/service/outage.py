"""The database as seen by requests: one log line when it fails, one when it is back."""

import logging
from threading import Lock

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from ecgquorum.recordings.recording import one_line

UNAVAILABLE = "the database does not respond; an administrator can find the reason in the desk's output"
_log = logging.getLogger(__name__)


def is_outage(error: BaseException) -> bool:
    """Whether the database cannot be used at all, and not just for this request."""
    return isinstance(error, PoolTimeoutError) or (
        isinstance(error, DBAPIError)
        and type(error).__name__ in ("OperationalError", "InterfaceError", "DatabaseError")
    )


class Outage:
    """Whether the database is down, logged when it changes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.is_down = False

    def begin(self, error: SQLAlchemyError) -> None:
        """Note that the database failed."""
        with self._lock:
            if not self.is_down:
                reason = error.orig if isinstance(error, DBAPIError) and error.orig else error
                _log.error("the database does not respond: %s", one_line(reason))
            self.is_down = True

    def end(self) -> None:
        """Note that the database responds."""
        if self.is_down:
            with self._lock:
                self.is_down = False
            _log.error("the database responds again")
