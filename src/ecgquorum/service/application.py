"""The ASGI application: middleware, API, pages and the worker process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from ecgquorum.service import pages
from ecgquorum.service.api import ROUTERS
from ecgquorum.service.change_feed import ChangeFeed
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import HttpError, TooLargeError
from ecgquorum.service.middleware import AccessMiddleware
from ecgquorum.service.worker import Worker

_BAD_REQUEST = 400


def desk_api(desk: Desk, *, with_worker: bool = True) -> FastAPI:
    """The routes without access control, for the OpenAPI description and for tests."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker = Worker(desk.settings) if with_worker else None
        try:
            yield
        finally:
            if worker:
                worker.stop()

    app = FastAPI(
        title="ecgquorum review desk",
        description="Research use only. This is not a medical device.",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk, app.state.changes = desk, ChangeFeed(desk.store)
    app.add_exception_handler(HttpError, _error_response)
    app.add_exception_handler(ClientDisconnect, _disconnect_response)
    for router in (*ROUTERS, pages.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    return app


def desk_application(desk: Desk, *, with_worker: bool = True) -> tuple[ASGIApp, ChangeFeed]:
    """The application for a server, and the change feed that ends its event streams."""
    app = desk_api(desk, with_worker=with_worker)
    return AccessMiddleware(app, desk), app.state.changes


async def _error_response(_: Request, error: Exception) -> JSONResponse:
    status = error.status if isinstance(error, HttpError) else 500
    # without it the server would read the rest of a body that is too large
    headers = {"connection": "close"} if isinstance(error, TooLargeError) else None
    return JSONResponse({"detail": str(error)}, status, headers)


async def _disconnect_response(_: Request, __: Exception) -> JSONResponse:
    return JSONResponse({"detail": "the connection was closed before the request was complete"}, _BAD_REQUEST)
