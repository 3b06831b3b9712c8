"""The ASGI application: middleware, API, pages and the worker process."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from ecgquorum.service import pages
from ecgquorum.service.api import ROUTERS
from ecgquorum.service.change_feed import ChangeFeed
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import HttpError, TooLargeError
from ecgquorum.service.middleware import AccessMiddleware
from ecgquorum.service.outage import UNAVAILABLE, is_outage
from ecgquorum.service.templating import respond_to_error
from ecgquorum.service.worker import Workers

_BAD_REQUEST = 400


def desk_api(desk: Desk, *, with_worker: bool = True) -> FastAPI:
    """The routes without access control, for the OpenAPI description and for tests."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        workers = app.state.workers = Workers(desk.settings) if with_worker else None
        try:
            yield
        finally:
            if workers:
                workers.stop()

    app = FastAPI(
        title="ecgquorum review desk",
        description="Research use only. This is not a medical device.",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk, app.state.changes, app.state.workers = desk, ChangeFeed(desk.store), None
    app.add_exception_handler(HttpError, _error_response)
    app.add_exception_handler(RequestValidationError, _invalid_response)
    app.add_exception_handler(SQLAlchemyError, _database_response)
    app.add_exception_handler(ClientDisconnect, _disconnect_response)
    for router in (*ROUTERS, pages.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    return app


def desk_application(desk: Desk, *, with_worker: bool = True) -> tuple[ASGIApp, ChangeFeed]:
    """The application for a server, and the change feed that ends its event streams."""
    app = desk_api(desk, with_worker=with_worker)
    return AccessMiddleware(app, desk), app.state.changes


def _desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


async def _error_response(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, HttpError) else 500
    response = respond_to_error(request, _desk_of(request), status, str(error))
    if isinstance(error, TooLargeError):
        response.headers["connection"] = "close"  # the server would otherwise read the rest of the body
    return response


async def _invalid_response(request: Request, error: Exception) -> Response:
    """What is wrong with the request, without its values: they may be secret, or not encodable."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    if not request.url.path.startswith("/api/"):
        return respond_to_error(request, _desk_of(request), 404, "there is no such page")
    detail = [{"type": one["type"], "loc": _printable(one["loc"]), "msg": one["msg"]} for one in problems]
    return respond_to_error(request, _desk_of(request), 422, detail)


def _printable(location: Iterable[object]) -> list[object]:
    return [one if isinstance(one, int) else str(one).encode(errors="replace").decode() for one in location]


async def _database_response(request: Request, error: Exception) -> Response:
    if not isinstance(error, SQLAlchemyError) or not is_outage(error):
        raise error
    desk = _desk_of(request)
    desk.outage.begin(error)
    return respond_to_error(request, desk, 503, UNAVAILABLE)


async def _disconnect_response(_: Request, __: Exception) -> JSONResponse:
    return JSONResponse({"detail": "the connection was closed before the request was complete"}, _BAD_REQUEST)
