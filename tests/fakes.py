"""Stand-ins for the ports whose arithmetic a reader can do."""

import asyncio
import math
import operator
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from string import ascii_lowercase
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

import numpy as np

from app.adapters import graph_payload, payload
from app.billing import Prices
from app.errors import InvalidFilter, NotFound, SextantError
from app.filters import FIELDS
from app.ports import Generator, R, RecordField, Reranker
from app.retrieval.calibration import FEATURES, Calibration
from app.tools import Ports
from app.types import (
    Access,
    Chunk,
    ChunkVectors,
    Condition,
    Document,
    DocumentMeta,
    Entity,
    Figure,
    Filter,
    FloatArray,
    Generation,
    Hit,
    IndexStamp,
    Job,
    Leg,
    LegName,
    LegRank,
    LegResult,
    Page,
    Prompt,
    Relation,
    Removed,
    Rows,
    SparseVector,
)


class FakeStore:
    """A WritableStore in memory whose scores can be worked out by hand.

    dense: cosine. bm25: sum over shared terms of query weight x chunk weight x ln((N - n + 0.5) / (n + 0.5) + 1), where
    N chunks have a bm25 vector and n of them the term. splade: the same sum without the logarithm. Ops are those of an
    exact scan: every chunk that passes the filter.
    """

    def __init__(self, stamp: IndexStamp) -> None:
        self._stamp = stamp
        self._chunks: dict[str, tuple[Chunk, ChunkVectors]] = {}
        self._dates: dict[str, str] = {}
        self._pages: dict[tuple[str, int], tuple[Page, DocumentMeta]] = {}
        self._documents: dict[str, Document] = {}
        self._records: dict[str, Entity | Relation] = {}

    async def stamp(self) -> IndexStamp:
        return self._stamp

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        for leg in legs:
            payload.check_leg(leg, self._stamp.dimensions)
        return [self._search(leg, self._passing(where)) for leg in legs]

    def _search(self, leg: Leg, passing: Sequence[Chunk]) -> LegResult:
        if isinstance(leg.query, SparseVector) and not leg.query.indices:
            return LegResult((), 0, "counted")
        scored = [(chunk, self._score(leg, self._chunks[chunk.id][1])) for chunk in passing]
        found = sorted(((c, s) for c, s in scored if s is not None), key=lambda item: (-item[1], item[0].id))
        hits = tuple(
            Hit(chunk, rank, score, {leg.name: LegRank(rank, score)})
            for rank, (chunk, score) in enumerate(found[: leg.limit], start=1)
        )
        return LegResult(hits, len(passing), "counted" if leg.name == "dense" else "bound")

    def _score(self, leg: Leg, vectors: ChunkVectors) -> float | None:
        """None where a sparse query and the chunk share no term."""
        if not isinstance(leg.query, SparseVector):
            norms = float(np.linalg.norm(leg.query) * np.linalg.norm(vectors.dense))
            return float(leg.query @ vectors.dense) / norms if norms else 0.0
        weights = _weights(vectors, leg.name)
        query = dict(zip(leg.query.indices, leg.query.values, strict=True))
        shared = weights.keys() & query.keys()
        terms = [query[term] * weights[term] * self._idf(leg.name, term) for term in sorted(shared)]
        return sum(terms) if shared else None

    def _idf(self, name: LegName, term: int) -> float:
        if name != "bm25":
            return 1.0
        having = [weights for _, vectors in self._chunks.values() if (weights := _weights(vectors, name))]
        n = sum(term in weights for weights in having)
        return math.log((len(having) - n + 0.5) / (n + 0.5) + 1)

    def _passing(self, where: Filter) -> list[Chunk]:
        payload.rest_filter(where)
        hidden = self._hidden()
        return [
            chunk
            for chunk, _ in self._chunks.values()
            if _may_read(chunk.meta, where.access)
            and chunk.document_id not in hidden
            and all(_holds(c, self._field(chunk, c.field)) for c in where.conditions)
        ]

    def _field(self, chunk: Chunk, name: str) -> Any:
        others = {
            "ingested_at": self._dates.get(chunk.id),
            "chunker": self._stamp.chunker,
            "embedder": self._stamp.embedder,
        }
        if name in others:
            return others[name]
        return getattr(chunk, name) if hasattr(chunk, name) else getattr(chunk.meta, name)

    async def pages(self, keys: Sequence[tuple[str, int]], access: Access) -> list[Page | None]:
        found = [self._pages.get(key) for key in keys]
        hidden = self._hidden()
        return [
            item[0] if item and key[0] not in hidden and _may_read(item[1], access) else None
            for key, item in zip(keys, found, strict=True)
        ]

    def _hidden(self) -> frozenset[str]:
        """Ids of the documents that no reader sees now."""
        unfinished = {document.id for document in self._documents.values() if document.state != "ready"}
        return frozenset(unfinished.union(*(document.replaces for document in self._documents.values())))

    async def documents(self, access: Access | None = None) -> list[Document]:
        hidden = self._hidden()
        visible = [
            document
            for document in self._documents.values()
            if access is None or (document.id not in hidden and _may_read(document.meta, access))
        ]
        return sorted(visible, key=lambda document: document.id)

    async def dense_sample(self, where: Filter, limit: int) -> FloatArray:
        passing = sorted(self._passing(where), key=lambda chunk: chunk.id)[:limit]
        return payload.rows([self._chunks[chunk.id][1].dense for chunk in passing], self._stamp.dimensions)

    async def count(self, where: Filter) -> int:
        return len(self._passing(where))

    async def chunks(self, ids: Sequence[str], where: Filter) -> list[Chunk]:
        passing = {chunk.id: chunk for chunk in self._passing(where)}
        return [passing[each] for each in dict.fromkeys(ids) if each in passing]

    async def records(self, kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]]) -> list[R]:
        payload.rest_filter(where)
        found, hidden = [], self._hidden()
        for _, record in sorted(self._records.items()):
            held = graph_payload.record_payload(record)
            passes = all(_holds(c, held.get(c.field)) for c in where.conditions if c.field in FILING_FIELDS)
            matches = all(set(values) & set(_listed(held.get(name))) for name, values in matching.items())
            seen = _may_read(record.meta, where.access) and record.document_id not in hidden
            if isinstance(record, kind) and seen and passes and matches:
                found.append(record)
        return found

    async def put_records(self, document_id: str, records: Sequence[Entity | Relation]) -> None:
        for record in records:
            graph_payload.record_payload(record)
        await self.delete_records(document_id)
        self._records |= {graph_payload.point_id(record): record for record in records}

    async def delete_records(self, document_id: str) -> int:
        own = [key for key, record in self._records.items() if record.document_id == document_id]
        for key in own:
            del self._records[key]
        return len(own)

    async def chunk_ids(self, document_id: str) -> list[str]:
        own = [chunk for chunk, _ in self._chunks.values() if chunk.document_id == document_id]
        return [chunk.id for chunk in sorted(own, key=lambda chunk: (chunk.ordinal, chunk.id))]

    async def put_document(self, document: Document) -> None:
        if document.ingested_at:
            self._dates |= dict.fromkeys(await self.chunk_ids(document.id), document.ingested_at)
        self._documents[document.id] = document

    async def put_pages(self, document: Document, pages: Sequence[Page]) -> None:
        self._pages |= {(document.id, page.number): (page, document.meta) for page in pages}

    async def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors]) -> None:
        payload.check_chunks(chunks, vectors, self._stamp.dimensions)
        for chunk in chunks:
            payload.chunk_payload(chunk, self._stamp)  # refuses text that no engine could hold
        for chunk, vector in zip(chunks, vectors, strict=True):
            self._dates.pop(chunk.id, None)
            self._chunks[chunk.id] = (chunk, vector)

    async def delete_document(self, document_id: str) -> tuple[int, int]:
        chunks = await self.chunk_ids(document_id)
        pages = [key for key in self._pages if key[0] == document_id]
        for chunk in chunks:
            del self._chunks[chunk]
        for key in pages:
            del self._pages[key]
        self._documents.pop(document_id, None)
        return len(chunks), len(pages)


FILING_FIELDS = frozenset({"document_id", "source", *(field.name for field in fields(DocumentMeta))})


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _weights(vectors: ChunkVectors, name: LegName) -> dict[int, float]:
    sparse = vectors.sparse.get(name, SparseVector((), ()))
    return dict(zip(sparse.indices, sparse.values, strict=True))


def _may_read(meta: DocumentMeta, access: Access) -> bool:
    return meta.tenant == access.tenant and not set(meta.acl).isdisjoint(access.groups)


def _holds(condition: Condition, value: Any) -> bool:
    """One comparison; a missing value holds for $ne and $nin alone."""
    wanted = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if FIELDS[condition.field] == "date":
        wanted = tuple(payload.instant(condition.field, item) for item in wanted)
        value = _instant_or_none(condition.field, value)
    if condition.op in ("$ne", "$nin"):
        return value not in wanted
    if condition.op in ("$eq", "$in"):
        return value in wanted
    compare = {"$gte": operator.ge, "$lte": operator.le, "$gt": operator.gt, "$lt": operator.lt}[condition.op]
    return value is not None and bool(compare(value, wanted[0]))


def _instant_or_none(field: str, value: str | None) -> str | None:
    try:
        return payload.instant(field, value) if value else None
    except InvalidFilter:
        return None


@dataclass
class FakeFigures:
    """A WritableFigures in memory that knows no SQL: it keeps what it is asked and answers what it is given."""

    reply: Rows | SextantError = field(default_factory=lambda: Rows((), ()))
    queries: list[str] = field(default_factory=list)
    kept: dict[str, list[Figure]] = field(default_factory=dict)

    async def query(self, sql: str, access: Access, *, limit: int = 100, timeout_s: float = 2.0) -> Rows:
        self.queries.append(sql)
        if isinstance(self.reply, SextantError):
            raise self.reply
        return self.reply

    async def put(self, document: Document, figures: Sequence[Figure]) -> None:
        self.kept[document.id] = list(figures)

    async def show(self, document_id: str, instead_of: Sequence[str] = ()) -> None:
        for each in instead_of:
            self.kept.pop(each, None)

    async def delete(self, document_id: str) -> int:
        return len(self.kept.pop(document_id, ()))

    async def counts(self) -> Mapping[str, int]:
        return {document_id: len(figures) for document_id, figures in self.kept.items()}

    async def of_document(self, document_id: str) -> list[Figure]:
        return self.kept.get(document_id, [])


STAMP = IndexStamp("filings", "letters", 26, "words", "whole-page")


class LetterEmbedder:
    """A dimension per letter: its share of the text's letters, unit norm; nearness that can be counted."""

    name = "letters"
    dimensions = 26

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        counts = np.array([[text.lower().count(letter) for letter in ascii_lowercase] for text in texts], np.float32)
        norms = np.linalg.norm(counts.reshape(len(texts), 26), axis=1, keepdims=True)
        return np.asarray(counts.reshape(len(texts), 26) / np.where(norms == 0, 1, norms), np.float32)

    queries = passages

    async def tokens(self, texts: Sequence[str]) -> list[FloatArray]:
        """A token per word."""
        return [await self.passages(text.split()) for text in texts]


class WordEncoder:
    """A term per distinct word, weight 1; its index is the sum of its letters' code points."""

    name = "words"

    def passages(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._vector(text) for text in texts]

    queries = passages

    def _vector(self, text: str) -> SparseVector:
        indices = sorted({sum(map(ord, word)) for word in text.lower().split()})
        return SparseVector(tuple(indices), (1.0,) * len(indices))


@dataclass
class ScriptedGenerator:
    """An LLM that says its lines in order and repeats the last; an exception among them is raised. Tokens are words."""

    replies: list[str | SextantError]
    prompts: list[Prompt] = field(default_factory=list)
    name: str = "scripted"
    purposes: frozenset[str] | None = None
    delay_s: float = 0.0

    async def generate(self, prompt: Prompt) -> Generation:
        self.prompts.append(prompt)
        reply = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        await asyncio.sleep(self.delay_s)
        if isinstance(reply, SextantError):
            raise reply
        read = sum(len(text.split()) for _, text in prompt.messages)
        return Generation(reply, llm_calls=1, input_tokens=read, output_tokens=len(reply.split()))

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        generation = await self.generate(prompt)
        for word in generation.text.split(" "):
            yield f"{word} "
        yield generation


class WordReranker:
    """5 for a passage that shares a word with the question, else -5."""

    name = "words"

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        words = set(query.lower().split())
        return [5.0 if words & set(passage.lower().split()) else -5.0 for passage in passages]


LOGIT_ALONE = Calibration((1.0, *(0.0,) * (len(FEATURES) - 1)), 0.0, 0.7, 0.3, {})
"""A grade is the sigmoid of the cross-encoder's logit."""

META = DocumentMeta(
    title="Acme Corp 10-K FY2022", source="acme.pdf", company="Acme Corp", form="10-K", fiscal_year=2022
)
TEXTS = ("net revenue was 10 million", "the board has nine members", "revenue by segment and region")


async def fake_ports(
    *,
    texts: Sequence[str] = TEXTS,
    pages: Mapping[str, Sequence[Page]] | None = None,
    generator: Generator | None = None,
    reranker: Reranker | None = None,
    prices: Prices | None = None,
) -> Ports:
    """Ports over a FakeStore that holds one document with a page and a chunk per text, or the pages given alone."""
    store = FakeStore(STAMP)
    if pages is None:
        pages = {"acme-1": [Page(n, text) for n, text in enumerate(texts, 1)]}
        chunks = [
            Chunk(str(uuid5(NAMESPACE_OID, text)), "acme-1", n, n + 1, 0, len(text), text, "", "text", None, META)
            for n, text in enumerate(texts)
        ]
        dense, sparse = await LetterEmbedder().passages(texts), WordEncoder().passages(texts)
        vectors = [ChunkVectors(d, {"bm25": s}) for d, s in zip(dense, sparse, strict=True)]
        await store.put_chunks(chunks, vectors)
    for document_id, own in pages.items():
        document = Document(document_id, "0" * 64, META, len(own), len(own))
        await store.put_pages(document, own)
        await store.put_document(document)
    generator = generator or ScriptedGenerator(["Revenue was 10 million [1]."])
    return Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, generator, reranker, prices or Prices())


@dataclass
class FakeIngestion:
    """Takes every file and keeps it waiting; removes documents at once."""

    store: FakeStore
    waiting: list[Job] = field(default_factory=list)

    async def submit(
        self, filename: str, content: AsyncIterator[bytes], access: Access, acl: tuple[str, ...] | None = None
    ) -> Job:
        size = sum([len(piece) async for piece in content])
        source = f"upload://{access.tenant}/{len(self.waiting)}"
        job = Job(uuid4().hex, filename, source, access.tenant, access.groups, acl, "0" * 64, size, "2024-05-01")
        self.waiting.append(job)
        return job

    async def job(self, job_id: str, access: Access) -> Job | None:
        return next((job for job in self.waiting if job.id == job_id and job.visible_to(access)), None)

    async def jobs(self, access: Access) -> list[Job]:
        return [job for job in reversed(self.waiting) if job.visible_to(access)]

    async def delete(self, document_id: str, access: Access) -> Removed:
        if document_id not in {document.id for document in await self.store.documents(access)}:
            raise NotFound(f"no document {document_id!r}")
        return Removed(*await self.store.delete_document(document_id), 0)

    def queued(self) -> int:
        return len(self.waiting)

    def follow(self, listener: Callable[[Job], None]) -> None:
        """Nothing here is ever done."""


class QuotingGenerator:
    """No LLM: quotes the first sentence of the first passage."""

    name = "quoting"
    purposes: frozenset[str] | None = frozenset({"answer"})

    async def generate(self, prompt: Prompt) -> Generation:
        sentence = prompt.passages[0].chunk.text.partition(". ")[0].rstrip(".")
        return Generation(f"{sentence} [1].")

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        generation = await self.generate(prompt)
        yield generation.text
        yield generation


@dataclass
class HeldGenerator(ScriptedGenerator):
    """An LLM that says nothing until it is released, and counts the calls that were cancelled before."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: int = 0

    async def generate(self, prompt: Prompt) -> Generation:
        self.begun.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().generate(prompt)
