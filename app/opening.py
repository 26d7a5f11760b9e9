"""Opens everything the settings name: store, models, generator."""

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from anyio import to_thread

from app.adapters.bm25 import Bm25Encoder
from app.adapters.embedding import load_embedder
from app.adapters.embedding_cache import CachedEmbedder, ClosableEmbedder
from app.adapters.figures_sqlite import SqliteFigures
from app.adapters.reranking import ModelReranker, load_reranker
from app.agent.threshold import read_residuals
from app.billing import Prices
from app.caching import Cache, Caches
from app.errors import IndexMissing, SextantError
from app.ports import (
    Embedder,
    ExternalSearch,
    Generator,
    Ingestion,
    Packer,
    PageImages,
    SparseEncoder,
    WritableFigures,
    WritableStore,
)
from app.question.routing import Measurements, read_measurements
from app.retrieval.calibration import Calibration, read_calibration, shipped_calibration
from app.settings import Settings
from app.tools import Ports
from app.types import IndexStamp, LegName

log = logging.getLogger("sextant.opening")
_LOCAL_PASSAGE_TOKENS = 450
"""Two cores read some 90 a second."""


def index_stamp(settings: Settings, embedder: Embedder, chunker: str) -> IndexStamp:
    """What a collection built with these settings is stamped with."""
    bm25, splade = Bm25Encoder().name, settings.splade_model
    return IndexStamp(settings.collection, embedder.name, embedder.dimensions, bm25, chunker, splade=splade)


def any_stamp(settings: Settings) -> IndexStamp:
    """Of one who reads records and pages alone: whatever the collection was built with."""
    return IndexStamp(settings.collection, "", 0, "", "", 0, "")


@asynccontextmanager
async def open_store(settings: Settings, stamp: IndexStamp, *, create: bool) -> AsyncIterator[WritableStore]:
    """The server's collection where QDRANT_URL is set, else the embedded one. Raises StoreLocked, IndexMismatch, ...

    What a stamp leaves open ("" or 0) is taken as found.
    """
    if settings.qdrant_url:
        from app.adapters.qdrant_server import ServerStore

        key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
        server = await ServerStore.open(
            settings.qdrant_url,
            key,
            settings.qdrant_timeout_s,
            stamp,
            shards=settings.qdrant_shards,
            replicas=settings.qdrant_replicas,
            create=create,
            build=settings.build,
        )
        try:
            yield server
        finally:
            await server.close()
        return
    from app.adapters.qdrant_edge import EdgeStore

    embedded = await to_thread.run_sync(lambda: EdgeStore.open(settings.index_dir, stamp, create=create))
    try:
        yield embedded
    finally:
        await to_thread.run_sync(embedded.close)


@asynccontextmanager
async def open_served(settings: Settings, embedder: Embedder, *, uploads: bool) -> AsyncIterator[WritableStore]:
    """The collection as it was built; a new one where there is none and uploads will fill it.

    Raises IndexMissing where they will not, StoreLocked, IndexMismatch, ...
    """
    async with AsyncExitStack() as stack:
        try:
            built = index_stamp(settings, embedder, chunker="")
            store = await stack.enter_async_context(open_store(settings, built, create=False))
        except IndexMissing:
            if not uploads:
                raise
            from ingest.chunking import read_chunker  # noqa: TID251 - as in open_documents

            stamp = index_stamp(settings, embedder, read_chunker(settings.chunker).name)
            store = await stack.enter_async_context(open_store(settings, stamp, create=True))
            log.info("a new index, for there was none", extra={"fields": {"collection": settings.collection}})
        yield store


async def open_embedder(settings: Settings) -> ClosableEmbedder:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    model = await to_thread.run_sync(
        load_embedder, settings.embedding_model, settings.model_threads, settings.embedding_precision
    )
    return CachedEmbedder(model, settings.embedding_cache) if settings.embedding_cache else model


async def open_sparse(settings: Settings) -> dict[LegName, SparseEncoder]:
    """BM25, and the learned encoder that SPLADE_MODEL names. Raises Unavailable."""
    encoders: dict[LegName, SparseEncoder] = {"bm25": Bm25Encoder()}
    if settings.splade_model != "none":
        from app.adapters.splade import load_splade

        encoders["splade"] = await to_thread.run_sync(load_splade, settings.splade_model, settings.embedding_precision)
    return encoders


@asynccontextmanager
async def open_generator(settings: Settings, embedder: ClosableEmbedder) -> AsyncIterator[Generator]:
    """The one that GENERATOR names. Raises GeneratorUnavailable."""
    if settings.generator == "openai":
        from app.adapters.openai_chat import OpenAIGenerator

        chat = OpenAIGenerator.from_settings(settings)
        try:
            yield chat
        finally:
            await chat.aclose()
        return
    if settings.generator == "local":
        from app.adapters.local_llm import LocalGenerator
        from app.local_model import located

        model = located(settings)
        threads, timeout_s = settings.model_threads, settings.local_timeout_s
        async with LocalGenerator.open(model, threads=threads, timeout_s=timeout_s) as local:
            yield local
        return
    from app.adapters.extractive import ExtractiveGenerator

    yield ExtractiveGenerator(embedder)


def open_packer(settings: Settings, embedder: Embedder, generator: Generator) -> Packer | None:
    """None where a model is shown whole passages, or there is no model."""
    budget = settings.passage_tokens or (_LOCAL_PASSAGE_TOKENS if settings.generator == "local" else None)
    if budget is None or settings.generator == "extractive":
        return None
    from app.adapters.extractive import ExtractiveGenerator
    from app.adapters.local_llm import LocalGenerator
    from app.adapters.packing import StatementPacker, rough_count

    count = generator.count_tokens if isinstance(generator, LocalGenerator) else rough_count
    return StatementPacker(ExtractiveGenerator(embedder), budget, count)


def open_quoting(settings: Settings, embedder: Embedder) -> Generator | None:
    """None where what the generator refuses is refused."""
    asked = settings.generator == "local" if settings.quote_fallback is None else settings.quote_fallback
    if settings.generator == "extractive" or not asked:
        return None
    from app.adapters.extractive import ExtractiveGenerator

    return ExtractiveGenerator(embedder)


async def open_reranker(settings: Settings) -> ModelReranker | None:
    """None where RERANKER_MODEL is `none`. Raises Unavailable."""
    if settings.reranker_model == "none":
        return None
    return await to_thread.run_sync(load_reranker, settings.reranker_model)


def open_calibration(settings: Settings) -> Calibration:
    """The collection's own where there is one, else the package's. Raises Unavailable."""
    own = settings.index_dir / "grader.json"
    path = settings.grader_calibration or (own if own.exists() else None)
    return read_calibration(path) if path else shipped_calibration()


def open_measurements(settings: Settings, generator: Generator) -> Measurements:
    """What a matrix found the architectures worth on this collection. Raises Unavailable."""
    path = settings.index_dir / "routes.json"
    return read_measurements(path, generator.name) if path.exists() else {}


def open_residuals(settings: Settings) -> Mapping[str, float]:
    """From which residual on agents follow a passage of this collection. Raises Unavailable."""
    path = settings.index_dir / "agent.json"
    return read_residuals(path) if path.exists() else {}


def open_caches(settings: Settings) -> Caches:
    return Caches(Cache(settings.cache_queries), Cache(settings.cache_grades), Cache(settings.cache_generations))


def open_external(settings: Settings) -> ExternalSearch | None:
    if settings.external_dir is None:
        return None
    from app.adapters.external_folder import FolderSearch

    return FolderSearch(settings.external_dir)


@asynccontextmanager
async def open_documents(
    settings: Settings,
    store: WritableStore,
    embedder: Embedder,
    sparse: Mapping[LegName, SparseEncoder],
    figures: WritableFigures,
    *,
    uploads: bool,
) -> AsyncIterator[tuple[Ingestion | None, PageImages]]:
    """What takes documents in, None where this process may not, and what shows their pages."""
    from ingest.images import OriginalImages  # noqa: TID251 - the composition root joins both sides
    from ingest.intake import open_intake  # noqa: TID251 - and only when it opens

    images = OriginalImages(settings.originals_dir)
    async with AsyncExitStack() as stack:
        stack.callback(images.close)
        ingestion: Ingestion | None = None
        if uploads:
            try:
                opening = open_intake(settings, store, embedder, sparse, figures)
                ingestion = await stack.enter_async_context(opening)
            except (SextantError, OSError) as error:
                log.warning("no uploads are taken", extra={"fields": {"why": str(error)}})
        yield ingestion, images


@asynccontextmanager
async def open_ports(settings: Settings, *, uploads: bool = False) -> AsyncIterator[Ports]:
    """Everything a request may reach, for the service's life; `uploads` for the one process that changes the index."""
    embedder = await open_embedder(settings)
    reranker: ModelReranker | None = None
    try:
        reranker, sparse = await open_reranker(settings), await open_sparse(settings)
        prices = Prices(settings.usd_per_million_input_tokens, settings.usd_per_million_output_tokens)
        async with (
            open_generator(settings, embedder) as generator,
            open_served(settings, embedder, uploads=uploads) as store,
        ):
            await embedder.queries(["warm up"])
            figures = SqliteFigures(settings.figures_in_use if settings.qdrant_url else settings.figures_file)
            opening = open_documents(settings, store, embedder, sparse, figures, uploads=uploads)
            async with opening as (ingestion, images):
                kept = figures if ingestion or settings.figures_file.exists() else None
                packer = open_packer(settings, embedder, generator)
                external, calibration = open_external(settings), open_calibration(settings)
                measured = open_measurements(settings, generator)
                ports = Ports(store, embedder, sparse, generator, reranker, prices, kept, ingestion, images, packer)
                yield replace(
                    ports,
                    quoting=open_quoting(settings, embedder),
                    external=external,
                    calibration=calibration,
                    measured=measured,
                    residuals=open_residuals(settings),
                    caches=open_caches(settings),
                    tokens=embedder,
                )
    finally:
        embedder.close()
        if reranker is not None:
            reranker.close()
