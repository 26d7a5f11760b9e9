"""The vector store on a Qdrant server or cluster, which many processes may share.

The collection's name is an alias of `<name>-v1` (likewise `<name>-pages`, `-documents` and `-graph`), so that an index
may be rebuilt as `<name>-v2` beside the one in use and switched to in one call (app.adapters.qdrant_builds). The stamp
is the chunk collection's metadata.
"""

import asyncio
import math
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from json import JSONDecodeError
from typing import Any, TypeVar

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from app.adapters import graph_payload as gp
from app.adapters import payload as pl
from app.errors import Busy, IndexMismatch, IndexMissing, StoreUnavailable, Timeout
from app.ports import R, RecordField
from app.types import (
    Access,
    Chunk,
    ChunkVectors,
    Document,
    Entity,
    Filter,
    FloatArray,
    IndexStamp,
    Leg,
    LegResult,
    Page,
    Relation,
    SparseVector,
)

T = TypeVar("T")
_MAX_BATCH_BYTES = 8 * 2**20
"""A quarter of the server's request limit, for sizes are estimated."""
_SCROLL = 1000
_TIE_MARGIN = 16
_LOOKS = 4
"""How often a read is repeated at most because documents came into sight or went out of it meanwhile."""
_FLOAT_BYTES = 4
_INDEX_TYPES: Mapping[pl.IndexType, Any] = {
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "keyword": models.PayloadSchemaType.KEYWORD,
    "integer": models.PayloadSchemaType.INTEGER,
    "datetime": models.PayloadSchemaType.DATETIME,
}
_INDEXES = {
    "": pl.CHUNK_INDEXES,
    "-pages": pl.PAGE_INDEXES,
    "-documents": pl.DOCUMENT_INDEXES,
    "-graph": gp.RECORD_INDEXES,
}
SUFFIXES = tuple(_INDEXES)
"""Of the names of a build's collections."""


def connect(url: str, api_key: str | None, timeout_s: int) -> AsyncQdrantClient:
    return AsyncQdrantClient(url=url, api_key=api_key, timeout=max(1, timeout_s), check_compatibility=False)


class ServerStore:
    """A WritableStore over four collections of a server: chunks, pages, documents, the graph's records.

    Where the server reports hardware usage, a search of dense legs alone bills what it reports; otherwise, and for
    sparse legs always, ops are bounded by the number of chunks that pass the filter.
    """

    def __init__(self, client: AsyncQdrantClient, url: str, stamp: IndexStamp, build: int | None = None) -> None:
        """`build` is one to work on by its number; None is the one in use, at every moment."""
        self._client = client
        self._url = url
        self._wanted = stamp
        self._stamp = stamp
        """As found, once it is open."""
        self._chunks = stamp.collection if build is None else f"{stamp.collection}-v{build}"
        self._pages = f"{self._chunks}-pages"
        self._documents = f"{self._chunks}-documents"
        self._graph = f"{self._chunks}-graph"

    @classmethod
    async def open(
        cls,
        url: str,
        api_key: str | None,
        timeout_s: float,
        stamp: IndexStamp,
        *,
        shards: int = 1,
        replicas: int = 1,
        create: bool = True,
        build: int | None = None,
    ) -> "ServerStore":
        """Find the collection or make it. Raises IndexMismatch, StoreUnavailable, Timeout.

        The number of shards is fixed once the collection exists. A `build` is made complete, but nothing is switched.
        """
        client = connect(url, api_key, math.ceil(timeout_s))
        store = cls(client, url, stamp, build)
        try:
            with server_errors(url):
                if build is not None and create:
                    await store._create(SUFFIXES, build, shards, replicas)
                elif not await client.collection_exists(store._chunks):
                    if not create:
                        raise IndexMissing(f"no collection {store._chunks!r} at {url}; ingest some filings first")
                    await store._create_first(SUFFIXES, shards, replicas)
                elif create and not await client.collection_exists(store._graph):
                    await store._create_first(("-graph",), shards, replicas)
            store._stamp = await store.stamp()
        except BaseException:
            await client.close()
            raise
        return store

    async def close(self) -> None:
        await self._client.close()

    async def _create(self, suffixes: Sequence[str], build: int, shards: int, replicas: int) -> dict[str, str]:
        """Collections, then their indexes. Returns them by suffix."""
        names = {suffix: f"{self._stamp.collection}-v{build}{suffix}" for suffix in suffixes}
        for suffix, name in names.items():
            if not await self._client.collection_exists(name):
                await self._client.create_collection(
                    name,
                    **self._vectors(suffix),
                    shard_number=shards,
                    replication_factor=replicas,
                    write_consistency_factor=replicas // 2 + 1,
                    metadata=asdict(self._stamp),
                )
            for field, kind in _INDEXES[suffix].items():
                await self._client.create_payload_index(name, field, _INDEX_TYPES[kind], wait=True)
        return names

    async def _create_first(self, suffixes: Sequence[str], shards: int, replicas: int) -> None:
        """The first build, then the aliases, whose presence says that all is complete."""
        aliases = [
            models.CreateAlias(collection_name=name, alias_name=self._stamp.collection + suffix)
            for suffix, name in (await self._create(suffixes, 1, shards, replicas)).items()
        ]
        await self._client.update_collection_aliases([models.CreateAliasOperation(create_alias=a) for a in aliases])

    def _vectors(self, suffix: str) -> dict[str, Any]:
        if suffix:
            return {"vectors_config": {}}
        size, distance = self._stamp.dimensions, models.Distance.COSINE
        return {
            "vectors_config": {pl.DENSE: models.VectorParams(size=size, distance=distance)},
            "sparse_vectors_config": {
                "bm25": models.SparseVectorParams(modifier=models.Modifier.IDF),
                "splade": models.SparseVectorParams(),
            },
        }

    async def stamp(self) -> IndexStamp:
        """Raises IndexMismatch where the collection is a build of other models now than it was opened with."""
        with server_errors(self._url):
            metadata = (await self._client.get_collection(self._chunks)).config.metadata
        try:
            found = IndexStamp(**metadata or {})
        except TypeError:
            raise IndexMismatch(
                f"collection {self._chunks!r} at {self._url} has no stamp of ours (metadata: {metadata!r:.200}); "
                "ingest into another collection (COLLECTION=<new name>)"
            ) from None
        pl.check_stamp(found, self._wanted, f"{self._url}, collection {self._wanted.collection!r}")
        return found

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        for leg in legs:
            pl.check_leg(leg, self._stamp.dimensions)
        return await self._seen(lambda hidden: self._search(legs, where, hidden))

    async def _search(self, legs: Sequence[Leg], where: Filter, hidden: Collection[str]) -> list[LegResult]:
        rest = models.Filter.model_validate(pl.rest_filter(where, hidden))
        results = [LegResult((), 0, "counted")] * len(legs)
        asked = {
            i: leg.limit + _TIE_MARGIN
            for i, leg in enumerate(legs)
            if not isinstance(leg.query, SparseVector) or leg.query.indices
        }
        while asked:
            requests = [_request(legs[i], rest, limit) for i, limit in asked.items()]
            (replies, usage), passing = await asyncio.gather(self._query(requests), self._count(where, hidden))
            ops = self._ops([legs[i] for i in asked], passing, usage)
            unsettled: dict[int, int] = {}
            for (i, limit), points, bill in zip(asked.items(), replies, ops, strict=True):
                hits = pl.hits_from(legs[i], [(str(point.id), point.score, point.payload or {}) for point in points])
                results[i] = LegResult(hits, results[i].ops + bill.ops, bill.ops_source)
                if not pl.settled([point.score for point in points], legs[i].limit, limit):
                    unsettled[i] = limit * 4
            asked = unsettled
        return results

    async def _query(
        self, requests: list[models.QueryRequest]
    ) -> tuple[list[list[models.ScoredPoint]], models.HardwareUsage | None]:
        """Below the client's own method, which drops the usage."""
        with server_errors(self._url):
            reply = await self._client.http.search_api.query_batch_points(
                collection_name=self._chunks, query_request_batch=models.QueryRequestBatch(searches=requests)
            )
        return [result.points for result in reply.result or []], reply.usage.hardware if reply.usage else None

    def _ops(self, legs: Sequence[Leg], passing: int, usage: models.HardwareUsage | None) -> list[LegResult]:
        """Bills of legs asked together.

        A server's cpu units are the bytes of the vectors it scored, summed over the batch; divided by the size of a
        float32 vector they are evaluations. They cannot be told apart by leg, so they are believed only where all legs
        are dense, and otherwise tighten a dense leg's bound.
        """
        if usage is None or not usage.cpu:
            return [LegResult((), passing, "bound") for _ in legs]
        evaluations = usage.cpu // (_FLOAT_BYTES * self._stamp.dimensions)
        if all(leg.name == pl.DENSE for leg in legs):
            share, rest = divmod(evaluations, len(legs))
            return [LegResult((), share + (i < rest), "reported") for i in range(len(legs))]
        bounds = [min(passing, evaluations) if leg.name == pl.DENSE else passing for leg in legs]
        return [LegResult((), bound, "bound") for bound in bounds]

    async def pages(self, keys: Sequence[tuple[str, int]], access: Access) -> list[Page | None]:
        return await self._seen(lambda hidden: self._read_pages(keys, access, hidden)) if keys else []

    async def _read_pages(
        self, keys: Sequence[tuple[str, int]], access: Access, hidden: Collection[str]
    ) -> list[Page | None]:
        wanted = models.Filter.model_validate(pl.pages_filter(keys, access, hidden))
        with server_errors(self._url):
            records, _ = await self._client.scroll(self._pages, wanted, limit=len(keys), with_payload=True)
        found = {str(record.id): record.payload or {} for record in records}
        return [pl.page_from(found[point]) if (point := pl.page_id(*key)) in found else None for key in keys]

    async def documents(self, access: Access | None = None) -> list[Document]:
        async def read(hidden: Collection[str]) -> list[Document]:
            records = await self._scroll(self._documents, pl.documents_filter(access, hidden), True)
            return sorted((pl.document_from(r.payload or {}) for r in records), key=lambda document: document.id)

        return await (self._seen(read) if access else read(()))

    async def _hidden(self) -> frozenset[str]:
        """Ids of the documents that no reader sees now."""
        records = await self._scroll(self._documents, pl.HIDING, ["id", "state", "replaces"])
        return frozenset().union(*(pl.hidden_by(record.payload or {}) for record in records))

    async def _seen(self, read: Callable[[Collection[str]], Awaitable[T]]) -> T:
        """What is read without the hidden documents; again where a document came into sight or went meanwhile."""
        hidden = await self._hidden()
        for _ in range(_LOOKS):
            found = await read(hidden)
            if not hidden or (now := await self._hidden()) == hidden:
                break
            hidden = now
        return found

    async def count(self, where: Filter) -> int:
        return await self._seen(lambda hidden: self._count(where, hidden))

    async def _count(self, where: Filter, hidden: Collection[str]) -> int:
        rest = models.Filter.model_validate(pl.rest_filter(where, hidden))
        with server_errors(self._url):
            return (await self._client.count(self._chunks, rest, exact=True)).count

    async def dense_sample(self, where: Filter, limit: int) -> FloatArray:
        return await self._seen(lambda hidden: self._dense_sample(where, limit, hidden))

    async def _dense_sample(self, where: Filter, limit: int, hidden: Collection[str]) -> FloatArray:
        rest = models.Filter.model_validate(pl.rest_filter(where, hidden))
        with server_errors(self._url):
            records, _ = await self._client.scroll(
                self._chunks, rest, limit=limit, with_payload=False, with_vectors=[pl.DENSE]
            )
        found = [record.vector[pl.DENSE] for record in records if isinstance(record.vector, dict)]
        return pl.rows(found, self._stamp.dimensions)

    async def chunk_ids(self, document_id: str) -> list[str]:
        """In the document's order."""
        records = await self._scroll(self._chunks, pl.match("document_id", document_id), ["ordinal"])
        return [str(r.id) for r in sorted(records, key=lambda r: ((r.payload or {}).get("ordinal", -1), str(r.id)))]

    async def chunks(self, ids: Sequence[str], where: Filter) -> list[Chunk]:
        return await self._seen(lambda hidden: self._read_chunks(ids, where, hidden)) if ids else []

    async def _read_chunks(self, ids: Sequence[str], where: Filter, hidden: Collection[str]) -> list[Chunk]:
        found: dict[str, pl.Payload] = {}
        for start in range(0, len(ids), _SCROLL):
            rest = pl.chunks_filter(ids[start : start + _SCROLL], where, hidden)
            found |= {str(r.id): r.payload or {} for r in await self._scroll(self._chunks, rest, True)}
        return [pl.chunk_from(each, found[each]) for each in dict.fromkeys(ids) if each in found]

    async def records(self, kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]]) -> list[R]:
        gp.records_filter(kind, where, matching)
        if not all(matching.values()) or not await self._has_graph():
            return []

        async def read(hidden: Collection[str]) -> list[R]:
            rest = gp.records_filter(kind, where, matching, hidden)
            found = sorted(await self._scroll(self._graph, rest, True), key=lambda record: str(record.id))
            return [gp.record_from(kind, record.payload or {}) for record in found]

        return await self._seen(read)

    async def _has_graph(self) -> bool:
        """A collection of an older version gets it from the next ingestion."""
        with server_errors(self._url):
            return await self._client.collection_exists(self._graph)

    async def put_document(self, document: Document) -> None:
        """Also dates the document's chunks: their `ingested_at` is the record's."""
        point = models.PointStruct(id=pl.record_id(document.id), vector={}, payload=pl.document_payload(document))
        with server_errors(self._url):
            if document.ingested_at:
                its_chunks = models.Filter.model_validate(pl.match("document_id", document.id))
                dated = {"ingested_at": document.ingested_at}
                await self._client.set_payload(self._chunks, dated, its_chunks, wait=True)
            await self._client.upsert(self._documents, [point], wait=True)

    async def put_pages(self, document: Document, pages: Sequence[Page]) -> None:
        points = [
            models.PointStruct(
                id=pl.page_id(document.id, page.number), vector={}, payload=pl.page_payload(document, page)
            )
            for page in pages
        ]
        await self._upsert(self._pages, points)

    async def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors]) -> None:
        """Raises, with nothing written, ValueError where any is malformed, IndexMismatch where they are of old models.

        The collection may have been switched to another build since it was opened.
        """
        pl.check_chunks(chunks, vectors, self._stamp.dimensions)
        stamp = await self.stamp()
        points = [_point(chunk, vector, stamp) for chunk, vector in zip(chunks, vectors, strict=True)]
        await self._upsert(self._chunks, points)

    async def put_records(self, document_id: str, records: Sequence[Entity | Relation]) -> None:
        points = [models.PointStruct(id=gp.point_id(r), vector={}, payload=gp.record_payload(r)) for r in records]
        if not await self._has_graph():
            await self._create_first(("-graph",), shards=1, replicas=1)
        stale = await self._record_ids(document_id) - {str(point.id) for point in points}
        await self._delete(self._graph, [*sorted(stale)])
        await self._upsert(self._graph, points)

    async def delete_records(self, document_id: str) -> int:
        ids = await self._record_ids(document_id) if await self._has_graph() else set()
        await self._delete(self._graph, [*sorted(ids)])
        return len(ids)

    async def _record_ids(self, document_id: str) -> set[str]:
        records = await self._scroll(self._graph, pl.match("document_id", document_id), False)
        return {str(record.id) for record in records}

    async def delete_document(self, document_id: str) -> tuple[int, int]:
        rest = pl.match("document_id", document_id)
        chunks = await self._scroll(self._chunks, rest, ["document_id"])
        # As in the embedded store: term statistics forget a vector that is replaced, but not one that is deleted.
        await self._upsert(self._chunks, [models.PointStruct(id=c.id, vector={}, payload=c.payload) for c in chunks])
        pages = await self._scroll(self._pages, rest, False)
        await self._delete(self._chunks, [record.id for record in chunks])
        await self._delete(self._pages, [record.id for record in pages])
        await self._delete(self._documents, [pl.record_id(document_id)])
        return len(chunks), len(pages)

    async def _delete(self, collection: str, ids: list[int | str | uuid.UUID]) -> None:
        if ids:
            with server_errors(self._url):
                await self._client.delete(collection, ids, wait=True)

    async def _upsert(self, collection: str, points: list[models.PointStruct]) -> None:
        for batch in _batches(points):
            with server_errors(self._url):
                await self._client.upsert(collection, batch, wait=True)

    async def _scroll(self, collection: str, rest: pl.Payload | None, keys: list[str] | bool) -> list[models.Record]:
        records: list[models.Record] = []
        wanted = models.Filter.model_validate(rest) if rest else None
        offset: Any = None
        while True:
            with server_errors(self._url):
                page, offset = await self._client.scroll(
                    collection, wanted, limit=_SCROLL, offset=offset, with_payload=keys
                )
            records += page
            if offset is None:
                return records


def _point(chunk: Chunk, vectors: ChunkVectors, stamp: IndexStamp) -> models.PointStruct:
    named: dict[str, Any] = {pl.DENSE: vectors.dense.tolist()}
    for name, sparse in vectors.sparse.items():
        if sparse.indices:
            named[name] = models.SparseVector(indices=list(sparse.indices), values=list(sparse.values))
    return models.PointStruct(id=str(uuid.UUID(chunk.id)), vector=named, payload=pl.chunk_payload(chunk, stamp))


def _request(leg: Leg, rest: models.Filter, limit: int) -> models.QueryRequest:
    query: Any = (
        models.SparseVector(indices=list(leg.query.indices), values=list(leg.query.values))
        if isinstance(leg.query, SparseVector)
        else leg.query.tolist()
    )
    return models.QueryRequest(query=query, using=leg.name, filter=rest, limit=limit, with_payload=True)


def _batches(points: Sequence[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
    """Consecutive points whose JSON stays, by estimate, within _MAX_BATCH_BYTES; at least one in each."""
    batch: list[models.PointStruct] = []
    size = 0
    for point in points:
        texts = sum(len(value) for value in (point.payload or {}).values() if isinstance(value, str))
        vectors: Iterable[Any] = point.vector.values() if isinstance(point.vector, dict) else ()
        numbers = sum(2 * len(v.values) if isinstance(v, models.SparseVector) else len(v) for v in vectors)
        estimate = 1000 + 3 * texts + 22 * numbers
        if batch and size + estimate > _MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(point)
        size += estimate
    if batch:
        yield batch


@contextmanager
def server_errors(url: str) -> Iterator[None]:
    """The client's exceptions as ours. Raises StoreUnavailable, Timeout, Busy."""
    try:
        yield
    except ResponseHandlingException as exc:
        if isinstance(exc.source, httpx.TimeoutException):
            raise Timeout(f"Qdrant at {url} did not answer in time") from exc
        raise StoreUnavailable(f"cannot talk to Qdrant at {url}: {exc.source or type(exc.source).__name__}") from exc
    except ResourceExhaustedResponse as exc:
        raise Busy(f"Qdrant at {url} is at its limit: {exc}", retry_after=float(exc.retry_after_s)) from exc
    except (QdrantException, JSONDecodeError) as exc:
        raise StoreUnavailable(f"{url} does not answer as Qdrant does: {exc}") from exc
    except UnexpectedResponse as exc:
        why = "the API key was refused" if exc.status_code in (401, 403) else exc.content.decode("utf-8", "replace")
        raise StoreUnavailable(f"Qdrant at {url} answered {exc.status_code}: {why:.300}") from exc
