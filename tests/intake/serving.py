"""The service over an embedded index and the hashing embedder, taking uploads; run as a module, it listens."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
from httpx import ASGITransport, AsyncClient, Response

from app.adapters.bm25 import Bm25Encoder
from app.adapters.figures_sqlite import SqliteFigures
from app.main import create_app
from app.opening import open_documents, open_served
from app.ports import SparseEncoder
from app.settings import Settings
from app.tools import Ports
from app.types import LegName
from tests.conftest import started
from tests.fakes import QuotingGenerator
from tests.ingest.filings import HashEmbedder


@asynccontextmanager
async def open_ports(settings: Settings) -> AsyncIterator[Ports]:
    embedder = HashEmbedder(float(os.environ.get("SECONDS_PER_TEXT", "0")))
    async with open_served(settings, embedder, uploads=settings.accept_uploads) as store:
        sparse: Mapping[LegName, SparseEncoder] = {"bm25": Bm25Encoder()}
        figures = SqliteFigures(settings.figures_file)
        async with open_documents(settings, store, embedder, sparse, figures, uploads=settings.accept_uploads) as (
            ingestion,
            images,
        ):
            yield Ports(
                store, embedder, sparse, QuotingGenerator(), figures=figures, ingestion=ingestion, images=images
            )


@asynccontextmanager
async def serving(data: Path, **settings: Any) -> AsyncIterator[AsyncClient]:
    """A client of the service, without a network."""
    async with (
        open_ports(Settings(data_dir=data, **settings)) as ports,
        started(ports, **settings) as app,
        AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        yield client


async def upload(client: AsyncClient, name: str, content: bytes, key: str = "", **query: Any) -> Response:
    headers = {"x-api-key": key} if key else {}
    return await client.post("/documents", files={"file": (name, content)}, headers=headers, params=query)


async def finished(client: AsyncClient, accepted: Response, key: str = "") -> dict[str, Any]:
    """The job as it ended."""
    assert accepted.status_code == 202, accepted.text
    headers = {"x-api-key": key} if key else {}
    with anyio.fail_after(300):
        while True:
            job: dict[str, Any] = (await client.get(accepted.headers["location"], headers=headers)).json()
            if job["state"] in ("done", "failed"):
                return job
            await anyio.sleep(0.02)


async def ingested(client: AsyncClient, name: str, content: bytes, key: str = "", **query: Any) -> dict[str, Any]:
    return await finished(client, await upload(client, name, content, key, **query), key)


async def _serve() -> None:
    import uvicorn

    settings = Settings()
    async with open_ports(settings) as ports:
        app = create_app(lambda _: nullcontext(ports), settings)
        config = uvicorn.Config(app, port=settings.api_port, log_config=None, lifespan="on")
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    anyio.run(_serve)
