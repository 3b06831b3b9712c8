"""Limits of connections: a minute for the headers of a request, and a number of clients."""

import asyncio
import logging

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_S = 60.0
MAX_CONNECTIONS = 500
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n"
_log = logging.getLogger(__name__)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 that closes connections whose headers take too long, and refuses those beyond the limit."""

    _header_timer: asyncio.TimerHandle | None = None
    header_s = HEADER_S
    max_connections = MAX_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time for the first headers, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            _log.warning("more than %d connections; refused one", self.max_connections)
            transport.write(_BUSY)
            transport.close()
            return
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Handle data; stop the time once the headers of a request are complete."""
        if self._is_idle() and self._header_timer is None:
            self._start_timer()
        super().data_received(data)
        if not self._is_idle():
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """After a response the keep-alive time of the server runs."""
        self._stop_timer()
        super().on_response_complete()

    def _is_idle(self) -> bool:
        """Whether no request is being handled."""
        return self.cycle is None or self.cycle.response_complete

    def _start_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.header_s, self._close_if_idle)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _close_if_idle(self) -> None:
        self._header_timer = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()
