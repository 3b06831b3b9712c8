"""The application: the gate, the API, the pages, the worker beside them."""

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
from ecgquorum.service.change_feed import Changes
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import Refusal, TooLarge
from ecgquorum.service.middleware import Gate
from ecgquorum.service.worker import Worker

_CUT_OFF = 400


def desk_api(desk: Desk, *, with_worker: bool = True) -> FastAPI:
    """The routes, without the gate: for what describes or tests them."""

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
    app.state.desk, app.state.changes = desk, Changes(desk.store)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(ClientDisconnect, _cut_off)
    for router in (*ROUTERS, pages.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    return app


def desk_application(desk: Desk, *, with_worker: bool = True) -> tuple[ASGIApp, Changes]:
    """What a server serves, and what tells its listeners to leave."""
    app = desk_api(desk, with_worker=with_worker)
    return Gate(app, desk), app.state.changes


async def _refused(_: Request, error: Exception) -> JSONResponse:
    status = error.status if isinstance(error, Refusal) else 500
    headers = {"connection": "close"} if isinstance(error, TooLarge) else None  # or the rest of it would be read
    return JSONResponse({"detail": str(error)}, status, headers)


async def _cut_off(_: Request, __: Exception) -> JSONResponse:
    return JSONResponse({"detail": "expected the whole request, found it cut off"}, _CUT_OFF)
