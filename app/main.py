"""The application: what it opens, what it routes, how it fails."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.errors import SextantError
from app.http import documents, figures, operations, query
from app.http.body import BodyLimit
from app.http.canonical import Canonical
from app.http.keys import Keys
from app.http.logging import RequestLog
from app.http.metrics import Metrics
from app.http.problems import described_as_problems, on_error
from app.http.replies import index_reply
from app.http.state import Slots, State
from app.settings import Settings
from app.tools import Ports

OpenPorts: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[Ports]]


class Service(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = described_as_problems(super().openapi())
        return self.openapi_schema


def create_app(open_ports: OpenPorts, settings: Settings) -> FastAPI:
    """The service over whatever ports `open_ports` opens for its life."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        async with open_ports(settings) as ports:
            if ports.ingestion is not None:
                ports.ingestion.follow(lambda _: ports.catalogue.forget())
                ports.ingestion.follow(metrics.job)
            yield {
                "ports": ports,
                "settings": settings,
                "metrics": metrics,
                "slots": Slots(settings.max_concurrency),
                "keys": Keys(settings.api_keys),
                "index": index_reply(await ports.store.stamp(), ports),
            }

    app = Service(
        title="Sextant",
        summary="Retrieval-augmented answers over financial filings, with verified citations and their price.",
        version=_version(),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(
        BodyLimit,
        most=settings.max_body_bytes,
        within_s=settings.body_timeout_s,
        streamed={("POST", "/documents")},
    )
    app.add_middleware(Canonical)
    app.add_middleware(RequestLog, metrics=metrics)
    for error in (SextantError, RequestValidationError, HTTPException):
        app.add_exception_handler(error, on_error)
    for router in (query.router, documents.router, figures.router, operations.router):
        app.include_router(router)
    return app


def _version() -> str:
    try:
        return version("sextant")
    except PackageNotFoundError:
        return "0"
