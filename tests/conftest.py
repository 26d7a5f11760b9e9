"""What tests share: a small corpus in memory, the service over it, and a client without a network."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import uvicorn
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from starlette.types import Receive, Scope, Send

from app.main import create_app
from app.ports import Generator
from app.settings import Settings
from app.tools import Ports
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, Entity, Mention, Page
from tests.fakes import LOGIT_ALONE, STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder, WordReranker

DEV_DATA = Path(__file__).parents[2] / "shared" / "data"
"""Real filings and questions for development; tests that need them are skipped where they are absent."""

FILINGS: dict[str, tuple[DocumentMeta, tuple[str, ...]]] = {
    "acme-2023": (
        DocumentMeta("Acme 10-K 2023", "filings/acme-2023.pdf", company="Acme", form="10-K", fiscal_year=2023),
        (
            "Revenue was $10 million in 2023. It rose because prices rose.",
            "Debt was $4 million at year end. The debt is due in 2027.",
        ),
    ),
    "globex-2022": (
        DocumentMeta("Globex 10-K 2022", "filings/globex-2022.pdf", company="Globex", form="10-K", fiscal_year=2022),
        ("The main risk is weather. Another risk is the price of steel.",),
    ),
    "initech-2023": (
        DocumentMeta("Initech 10-K 2023", "filings/initech-2023.pdf", company="Initech", tenant="other"),
        ("Revenue was $99 million in 2023.",),
    ),
}
"""Three pages of two filings for everyone's tenant, one page for another tenant; a page is one chunk.

Of the graph each filing has its company, mentioned on all its pages.
"""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingestion without the graph, whose tagger takes seconds to load; a test that wants it says so."""
    monkeypatch.setenv("GRAPH", "false")


async def fill(store: FakeStore) -> None:
    for document_id, (meta, texts) in FILINGS.items():
        document = Document(document_id, "0" * 64, meta, len(texts), len(texts), ingested_at="2024-05-01T00:00:00Z")
        await store.put_pages(document, [Page(n, text) for n, text in enumerate(texts, start=1)])
        chunks = [
            Chunk(f"{document_id}/{n}", document_id, n, n + 1, 0, len(text), text, meta.title, "text", None, meta)
            for n, text in enumerate(texts)
        ]
        dense = await LetterEmbedder().passages(texts)
        sparse = WordEncoder().passages([chunk.searchable for chunk in chunks])
        await store.put_chunks(chunks, [ChunkVectors(d, {"bm25": s}) for d, s in zip(dense, sparse, strict=True)])
        entity = Entity(
            document_id, f"company:{meta.company}".lower(), "company", str(meta.company), (str(meta.company).lower(),),
            tuple(Mention(chunk.id, chunk.page, 0, 4) for chunk in chunks), len(chunks), meta,
        )  # fmt: skip
        await store.put_records(document_id, [entity])
        await store.put_document(document)


MakePorts: TypeAlias = Callable[..., Awaitable[Ports]]
MakeClient: TypeAlias = Callable[..., AbstractAsyncContextManager[AsyncClient]]


@pytest.fixture
def make_ports() -> MakePorts:
    """`await make_ports(generator=..., prices=...)`: ports over the small corpus."""

    async def make(generator: Generator | None = None, **others: Any) -> Ports:
        store = FakeStore(STAMP)
        await fill(store)
        ports = Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, generator or QuotingGenerator(), WordReranker())
        return replace(ports, **{"calibration": LOGIT_ALONE, **others})

    return make


@dataclass
class Started:
    """An application with its lifespan's state, which the transport itself does not pass on."""

    app: FastAPI
    state: dict[str, Any]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "state": dict(self.state)}, receive, send)


@asynccontextmanager
async def started(ports: Ports, **settings: Any) -> AsyncIterator[Started]:
    app = create_app(lambda _: nullcontext(ports), Settings(**settings))
    async with app.router.lifespan_context(app) as state:
        yield Started(app, dict(state or {}))


@dataclass
class Live:
    url: str
    server: uvicorn.Server
    task: asyncio.Task[None]


@asynccontextmanager
async def live(ports: Ports, **settings: Any) -> AsyncIterator[Live]:
    """A real server on a free loopback port; stopped gracefully at the end, unless it has been already."""
    app = create_app(lambda _: nullcontext(ports), Settings(**settings))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=10))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110  uvicorn offers no event to wait for
            await asyncio.sleep(0.01)
        try:
            yield Live(f"http://127.0.0.1:{listener.getsockname()[1]}", server, task)
        finally:
            server.should_exit = True
            await task


@pytest.fixture
def make_client(make_ports: MakePorts) -> MakeClient:
    """`async with make_client(ports, api_keys=...) as client`: the service over these ports, with these settings."""

    @asynccontextmanager
    async def make(ports: Ports | None = None, **settings: Any) -> AsyncIterator[AsyncClient]:
        async with started(ports or await make_ports(), **settings) as app:
            async with AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as client:
                yield client

    return make
