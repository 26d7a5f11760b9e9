"""The embedded vector store: Qdrant's own segment engine inside this process, one folder, one owner."""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge
from anyio import CapacityLimiter, to_thread

from app.adapters import graph_payload as gp
from app.adapters import payload as pl
from app.adapters.edge_folder import (
    GRAPH,
    check_whole,
    designs,
    engine_errors,
    file_errors,
    need_room,
    open_shard,
    settled_stamp,
    take_lock,
)
from app.errors import IndexMissing, StoreUnavailable
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

_MIN_FREE_BYTES = 128 * 2**20
"""What a batch may need at once: a log segment and a page of each storage, each of 32 MiB."""
_TIE_MARGIN = 8
_ALL = 2**31
_RECORDS_PER_WRITE = 256
_CLAUSES = ("must", "should", "must_not")
_EXACT = edge.SearchParams(exact=True)


class EdgeStore:
    """A WritableStore over four shards in one folder: chunks, pages, documents, the graph's records.

    Search is an exact scan, so a dense leg's ops are the chunks that pass its filter, counted; a sparse leg's are
    bounded by the same number. Where more chunks tie than were fetched, the scan is repeated and billed again. Every
    engine call holds the interpreter's lock, so calls run one at a time in one worker thread. A write is flushed before
    it returns.
    """

    def __init__(
        self, directory: Path, stamp: IndexStamp, lock: int, shards: dict[str, edge.EdgeShard], min_free_bytes: int
    ) -> None:
        self._directory = directory
        self._stamp = stamp
        self._lock = lock
        self._shards = shards
        self._min_free_bytes = min_free_bytes
        self._limiter = CapacityLimiter(1)
        self._counts: dict[Filter, int] = {}
        self._hides: dict[str, frozenset[str]] = {}
        for record in self._scroll("documents", pl.HIDING):
            self._note(record.payload or {})

    @classmethod
    def open(
        cls, directory: Path, stamp: IndexStamp, *, create: bool = True, min_free_bytes: int = _MIN_FREE_BYTES
    ) -> "EdgeStore":
        """Take the folder's lock, then load it. Raises StoreLocked, IndexMismatch, StoreUnavailable."""
        if not create and not (directory / "stamp.json").exists():
            raise IndexMissing(f"no index at {directory}; ingest some filings first")
        with file_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
            lock = take_lock(directory)
            try:
                stamp = settled_stamp(directory, stamp)
                check_whole(directory, create)
                shards = {name: open_shard(directory / name, config) for name, config in designs(stamp).items()}
                with engine_errors(directory):
                    return cls(directory, stamp, lock, shards, min_free_bytes)
            except BaseException:
                os.close(lock)
                raise

    def close(self) -> None:
        """Flush, release the folder. May be called twice."""
        shards, self._shards = self._shards, {}
        self._counts.clear()
        if not shards:
            return
        try:
            with engine_errors(self._directory):
                for shard in shards.values():
                    shard.flush()
                    shard.close()
        finally:
            os.close(self._lock)

    def _note(self, record: pl.Payload) -> None:
        self._hides.pop(record["id"], None)
        if hidden := pl.hidden_by(record):
            self._hides[record["id"]] = hidden

    @property
    def _hidden(self) -> frozenset[str]:
        """Ids of the documents that no reader sees now."""
        return frozenset().union(*self._hides.values())

    async def stamp(self) -> IndexStamp:
        self._shard("chunks")
        return self._stamp

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        for leg in legs:
            pl.check_leg(leg, self._stamp.dimensions)
        return await self._run(lambda: [self._search_leg(leg, where) for leg in legs])

    def _search_leg(self, leg: Leg, where: Filter) -> LegResult:
        if isinstance(leg.query, SparseVector):
            if not leg.query.indices:
                return LegResult((), 0, "counted")
            vector: Any = edge.SparseVector(list(leg.query.indices), list(leg.query.values))
        else:
            vector = leg.query.tolist()
        asked, scans, rest = leg.limit + _TIE_MARGIN, 1, pl.rest_filter(where, self._hidden)
        while True:
            request = edge.QueryRequest(
                limit=asked,
                query=edge.Query.Nearest(vector, using=leg.name),
                filter=edge_filter(rest),
                params=_EXACT,
                with_payload=True,
            )
            points = self._shard("chunks").query(request)
            if pl.settled([point.score for point in points], leg.limit, asked):
                break
            asked, scans = asked * 4, scans + 1
        hits = pl.hits_from(leg, [(str(point.id), point.score, point.payload or {}) for point in points])
        return LegResult(hits, scans * self._count(where), "counted" if leg.name == pl.DENSE else "bound")

    async def pages(self, keys: Sequence[tuple[str, int]], access: Access) -> list[Page | None]:
        def read() -> list[Page | None]:
            rest = pl.pages_filter(keys, access, self._hidden)
            found = {str(r.id): r.payload or {} for r in self._scroll("pages", rest)}
            return [pl.page_from(found[key]) if (key := pl.page_id(*k)) in found else None for k in keys]

        return await self._run(read) if keys else []

    async def documents(self, access: Access | None = None) -> list[Document]:
        return await self._run(lambda: self._all_documents(access))

    def _all_documents(self, access: Access | None = None) -> list[Document]:
        """Ordered by id."""
        records = self._scroll("documents", pl.documents_filter(access, self._hidden if access else ()))
        return sorted((pl.document_from(record.payload or {}) for record in records), key=lambda d: d.id)

    async def count(self, where: Filter) -> int:
        return await self._run(lambda: self._count(where))

    async def dense_sample(self, where: Filter, limit: int) -> FloatArray:
        def read() -> FloatArray:
            rest = edge_filter(pl.rest_filter(where, self._hidden))
            request = edge.ScrollRequest(limit=limit, filter=rest, with_payload=False, with_vector=[pl.DENSE])
            records = self._shard("chunks").scroll(request)[0]
            found = [record.vector[pl.DENSE] for record in records if isinstance(record.vector, dict)]
            return pl.rows(found, self._stamp.dimensions)

        return await self._run(read)

    async def chunk_ids(self, document_id: str) -> list[str]:
        """In the document's order."""

        def read() -> list[str]:
            records = self._scroll("chunks", pl.match("document_id", document_id), ["ordinal"])
            return [str(r.id) for r in sorted(records, key=lambda r: ((r.payload or {}).get("ordinal", -1), str(r.id)))]

        return await self._run(read)

    async def chunks(self, ids: Sequence[str], where: Filter) -> list[Chunk]:
        def read() -> list[Chunk]:
            rest = pl.chunks_filter(ids, where, self._hidden)
            found = {str(r.id): r.payload or {} for r in self._scroll("chunks", rest)}
            return [pl.chunk_from(each, found[each]) for each in dict.fromkeys(ids) if each in found]

        return await self._run(read) if ids else []

    async def records(self, kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]]) -> list[R]:
        def read() -> list[R]:
            rest = gp.records_filter(kind, where, matching, self._hidden)
            found = sorted(self._scroll(GRAPH, rest), key=lambda record: str(record.id))
            return [gp.record_from(kind, record.payload or {}) for record in found]

        return await self._run(read) if all(matching.values()) else []

    async def put_document(self, document: Document) -> None:
        """Also dates the document's chunks: their `ingested_at` is the record's."""
        point = edge.Point(id=pl.record_id(document.id), vector={}, payload=pl.document_payload(document))

        def write() -> None:
            if document.ingested_at:
                its_chunks = edge_filter(pl.match("document_id", document.id))
                dated = {"ingested_at": document.ingested_at}
                self._write("chunks", edge.UpdateOperation.set_payload_by_filter(its_chunks, dated))
            self._write("documents", edge.UpdateOperation.upsert_points([point]))
            self._note(point.payload or {})

        await self._run(write)

    async def put_pages(self, document: Document, pages: Sequence[Page]) -> None:
        def write() -> None:
            points = [
                edge.Point(id=pl.page_id(document.id, page.number), vector={}, payload=pl.page_payload(document, page))
                for page in pages
            ]
            self._write("pages", edge.UpdateOperation.upsert_points(points))

        await self._run(write)

    async def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors]) -> None:
        """Raises ValueError, with nothing written, where any chunk or vector is malformed."""

        def write() -> None:
            pl.check_chunks(chunks, vectors, self._stamp.dimensions)
            points = [self._point(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
            self._write("chunks", edge.UpdateOperation.upsert_points(points))

        await self._run(write)

    def _point(self, chunk: Chunk, vectors: ChunkVectors) -> edge.Point:
        named: dict[str, Any] = {pl.DENSE: vectors.dense.tolist()}
        for name, sparse in vectors.sparse.items():
            if sparse.indices:
                named[name] = edge.SparseVector(list(sparse.indices), list(sparse.values))
        return edge.Point(id=uuid.UUID(chunk.id), vector=named, payload=pl.chunk_payload(chunk, self._stamp))

    async def put_records(self, document_id: str, records: Sequence[Entity | Relation]) -> None:
        def write() -> None:
            points = [edge.Point(id=gp.point_id(r), vector={}, payload=gp.record_payload(r)) for r in records]
            stale = self._record_ids(document_id) - {str(point.id) for point in points}
            self._write(GRAPH, edge.UpdateOperation.delete_points(sorted(stale)))
            for start in range(0, len(points), _RECORDS_PER_WRITE):
                self._write(GRAPH, edge.UpdateOperation.upsert_points(points[start : start + _RECORDS_PER_WRITE]))

        await self._run(write)

    async def delete_records(self, document_id: str) -> int:
        def delete() -> int:
            ids = self._record_ids(document_id)
            self._write(GRAPH, edge.UpdateOperation.delete_points(sorted(ids)))
            return len(ids)

        return await self._run(delete)

    def _record_ids(self, document_id: str) -> set[str]:
        return {str(record.id) for record in self._scroll(GRAPH, pl.match("document_id", document_id), False)}

    async def delete_document(self, document_id: str) -> tuple[int, int]:
        def delete() -> tuple[int, int]:
            rest = pl.match("document_id", document_id)
            chunks = self._scroll("chunks", rest, ["document_id"])
            pages = self._scroll("pages", rest, False)
            # The engine's term statistics forget a vector that is replaced, but not one that is deleted (until the
            # shard is loaded again), and BM25 scores must not depend on what used to be there.
            emptied = [edge.Point(id=record.id, vector={}, payload=record.payload) for record in chunks]
            emptying = edge.UpdateOperation.upsert_points(emptied)
            self._write("chunks", emptying, edge.UpdateOperation.delete_points([record.id for record in chunks]))
            self._write("pages", edge.UpdateOperation.delete_points([record.id for record in pages]))
            self._write("documents", edge.UpdateOperation.delete_points([pl.record_id(document_id)]))
            self._hides.pop(document_id, None)
            return len(chunks), len(pages)

        return await self._run(delete)

    async def optimize(self) -> None:
        """Merge segments and reclaim deleted points: for the ingestion, as it blocks the whole process."""
        await self._run(lambda: [shard.optimize() for shard in self._shards.values()])

    async def _run(self, work: Callable[[], T]) -> T:
        def guarded() -> T:
            with engine_errors(self._directory):
                return work()

        return await to_thread.run_sync(guarded, limiter=self._limiter)

    def _shard(self, name: str) -> edge.EdgeShard:
        if name not in self._shards:
            raise StoreUnavailable(f"the index at {self._directory} is closed")
        return self._shards[name]

    def _write(self, name: str, *operations: edge.UpdateOperation) -> None:
        need_room(self._directory, self._min_free_bytes)
        self._counts.clear()
        for operation in operations:
            self._shard(name).update(operation)
        self._shard(name).flush()

    def _count(self, where: Filter) -> int:
        """Cached until the next write."""
        if where not in self._counts:
            request = edge.CountRequest(exact=True, filter=edge_filter(pl.rest_filter(where, self._hidden)))
            self._counts[where] = self._shard("chunks").count(request)
        return self._counts[where]

    def _scroll(self, name: str, rest: pl.Payload | None, keys: list[str] | bool = True) -> list[edge.Record]:
        request = edge.ScrollRequest(limit=_ALL, filter=edge_filter(rest) if rest else None, with_payload=keys)
        return list(self._shard(name).scroll(request)[0])


def edge_filter(rest: Mapping[str, Any]) -> edge.Filter:
    """Qdrant's REST filter as the engine's; knows has_id, match value and any, ranges and nested filters."""
    must, should, must_not = ([_edge_condition(item) for item in rest.get(name) or ()] or None for name in _CLAUSES)
    return edge.Filter(must=must, should=should, must_not=must_not)


def _edge_condition(item: Mapping[str, Any]) -> Any:
    if "has_id" in item:
        return edge.HasIdCondition(set(item["has_id"]))
    if "key" not in item:
        return edge_filter(item)
    if "range" in item:
        bounds = item["range"]
        timed = any(isinstance(bound, str) for bound in bounds.values())
        return edge.FieldCondition(item["key"], range=(edge.RangeDateTime if timed else edge.RangeFloat)(**bounds))
    wanted = item["match"]
    return edge.FieldCondition(
        item["key"], match=edge.MatchAny(wanted["any"]) if "any" in wanted else edge.MatchValue(wanted["value"])
    )
